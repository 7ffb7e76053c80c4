import unittest

import yaml_subset


class YamlSubset(unittest.TestCase):
    def test_reads_maps_lists_and_texts(self):
        text = """
# comment
a:
- x: 1
  'y z': "two"  # comment
- - deep
b: ["p", 'q', r: s]
""".replace(", r: s", ", 3")
        self.assertEqual([{"a": [{"x": 1, "y z": "two"}, ["deep"]], "b": ["p", "q", 3]}], yaml_subset.documents(text))

    def test_reads_folded_and_literal_texts(self):
        text = "a: >-\n  one\n  two\nb: |\n  x: y\n    z\nc: {}\n"
        self.assertEqual([{"a": "one two", "b": "x: y\n  z\n", "c": {}}], yaml_subset.documents(text))

    def test_splits_documents_and_drops_empty_ones(self):
        self.assertEqual([{"a": 1}, {"a": None}], yaml_subset.documents("---\na: 1\n---\n# nothing\n---\na:\n"))

    def test_tells_strings_from_constants(self):
        self.assertEqual([{"a": "true", "b": True, "c": "5", "d": 5, "e": ":8080"}],
                         yaml_subset.documents("a: \"true\"\nb: true\nc: '5'\nd: 5\ne: :8080\n"))

    def test_refuses_what_it_does_not_know(self):
        for text in ("a: &x 1\n", "a: 1\na: 2\n", "a: [1\n", "a: 1\n  b: 2\n"):
            with self.subTest(text=text), self.assertRaises(yaml_subset.Unreadable):
                yaml_subset.documents(text)
