"""The plugin's checkpoint, as far as a test must rewrite it: the boot that it was written in.

Checksums: 32 bit FNV-1a over the text "([]uint8)[" + the bytes in decimal, separated by spaces + "]".
"""

import re

OFFSET, PRIME = 2166136261, 16777619


def checksum(text):
    """The checksum of a JSON text."""
    value = OFFSET
    for byte in f"([]uint8)[{' '.join(map(str, text.encode()))}]".encode():
        value = ((value ^ byte) * PRIME) & 0xffffffff
    return value


def of_another_boot(text, boot_id):
    """The checkpoint's text as if it had been written in the boot of that id."""
    head, found, rest = text.partition('"v2":')
    if not found:
        raise ValueError("the checkpoint has no v2")
    inner = rest.rstrip().removesuffix("}").rstrip()
    end = rest[len(inner):]
    inner, count = re.subn(r'("nodeBootID":")[^"]*"', rf'\g<1>{boot_id}"', inner)
    if count != 1:
        raise ValueError("the checkpoint names no boot")
    zero, count = re.subn(r'^(\s*\{\s*"checksum":)\d+', r"\g<1>0", inner)
    if count != 1:
        raise ValueError("v2 does not begin with its checksum")
    return head + found + re.sub(r'^(\s*\{\s*"checksum":)\d+', rf"\g<1>{checksum(zero.strip())}", inner) + end


# The worked examples of the format: a change of it is noticed here.
assert checksum('{"checksum":0}') == 4166374854
assert checksum('{"checksum":0,"nodeBootID":"beef-beef-beef-beef-beefbeef0001"}') == 540943066
