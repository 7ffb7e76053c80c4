//go:build tools

// Package tools names the programs that build.py builds from this module.
package tools

import _ "helm.sh/helm/v3/cmd/helm"
