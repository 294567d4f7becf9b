// Package instancetypes lists the names of EC2's instance types and derives their architectures from the
// names. It is a snapshot: AWS adds types, so other names may be valid too.
package instancetypes

import (
	_ "embed"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/weir-gitops/weir/render/lazyregexp"
)

//go:generate go run generate.go

// table has a family on every line: its name and its sizes, smallest first.
//
//go:embed table.txt
var table string

var families = sync.OnceValue(func() map[string][]string {
	out := map[string][]string{}
	for line := range strings.Lines(table) {
		if words := strings.Fields(line); len(words) > 1 {
			out[words[0]] = words[1:]
		}
	}
	return out
})

// Known reports whether a name such as "m5.large" is an instance type in the list.
func Known(name string) bool {
	family, size, _ := strings.Cut(name, ".")
	for _, s := range families()[family] {
		if s == size {
			return true
		}
	}
	return false
}

// Families returns the names of all families, such as "m5", sorted.
func Families() []string { return slices.Sorted(maps.Keys(families())) }

// Sizes returns the sizes of a family, such as "large", or nil for an unknown family. The caller must not
// change the result.
func Sizes(family string) []string { return families()[family] }

// Architectures in EC2's API.
const (
	X86      = "x86_64"
	ARM      = "arm64"
	X86Apple = "x86_64_mac"
	ARMApple = "arm64_mac"
)

// generation splits a family's name into series, generation, attribute letters and the part after a hyphen.
var generation = lazyregexp.New(`^([a-z]+)([0-9]+)([a-z]*)(-.*)?$`)

// Architecture returns the architecture of an instance type, or "" if its family is unknown. The few old
// types that can also run 32-bit images are x86_64.
//
// The rules are from "Amazon EC2 instance type naming conventions" in AWS's guide to instance types. A g
// after the generation means Graviton, which is ARM. A g before it (g5, gr6) means graphics, and has no
// relation to the processor. The first ARM family, a1, is older than the rule. GB is Nvidia's Grace with an
// ARM processor, and a Mac with an M has an ARM processor of Apple.
func Architecture(name string) string {
	family, _, _ := strings.Cut(name, ".")
	if families()[family] == nil {
		return ""
	}
	if strings.HasPrefix(family, "mac") {
		if family == "mac1" {
			return X86Apple
		}
		return ARMApple
	}
	m := generation.FindStringSubmatch(family)
	if family == "a1" || m != nil && (strings.Contains(m[3], "g") || strings.HasPrefix(m[4], "-gb")) {
		return ARM
	}
	return X86
}
