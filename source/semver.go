package source

import (
	"fmt"
	"sort"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/go-git/go-git/v5/plumbing"

	"github.com/weir-gitops/weir/source/fault"
)

// listedVersions bounds the versions in an error message.
const listedVersions = 5

// taggedVersion is a tag whose name is a version.
type taggedVersion struct {
	candidate
	version *semver.Version
}

// parseVersionTag parses MAJOR.MINOR.PATCH with optional suffixes and an optional leading v. ok is false for
// all other tags.
func parseVersionTag(tag string) (*semver.Version, bool) {
	v, err := semver.StrictNewVersion(strings.TrimPrefix(tag, "v"))
	return v, err == nil
}

// selectVersion returns the tag with the highest version in a range. A pre-release counts only if the range
// names one. Tags of the same version, which differ in the leading v or in build metadata, are rivals. The
// newest commit wins, and among equal times the tag that sorts last.
func selectVersion(where, text string, refs map[string]plumbing.Hash) (selection, error) {
	within, err := semver.NewConstraint(text)
	if err != nil {
		return selection{}, fault.New(fault.MissingRef, "ref.semver %q is not a range of versions: %v", text, err)
	}
	var versions []taggedVersion
	others := 0
	for name, h := range refs {
		tag, ok := strings.CutPrefix(name, "refs/tags/")
		if !ok || strings.HasSuffix(tag, "^{}") {
			continue
		}
		if v, ok := parseVersionTag(tag); ok {
			versions = append(versions, taggedVersion{candidate{name, h}, v})
		} else {
			others++
		}
	}
	sort.Slice(versions, func(i, j int) bool {
		if c := versions[i].version.Compare(versions[j].version); c != 0 {
			return c > 0
		}
		return versions[i].ref > versions[j].ref
	})
	var t selection
	for _, v := range versions {
		switch {
		case !within.Check(v.version):
			if t.ref != "" {
				return t, nil
			}
		case t.ref == "":
			t = selection{candidate: v.candidate, wants: []plumbing.Hash{v.hash}}
		case mustParse(t.ref).Equal(v.version):
			t.rivals = append(t.rivals, v.candidate)
			t.wants = append(t.wants, v.hash)
		default:
			return t, nil
		}
	}
	if t.ref != "" {
		return t, nil
	}
	return selection{}, noVersion(where, text, versions, others)
}

func mustParse(ref string) *semver.Version {
	v, _ := parseVersionTag(strings.TrimPrefix(ref, "refs/tags/"))
	return v
}

// noVersion returns an error that lists the existing versions.
func noVersion(where, text string, versions []taggedVersion, others int) error {
	have := "none of its tags is a version such as v1.2.3"
	if len(versions) > 0 {
		var newest []string
		for _, v := range versions[:min(len(versions), listedVersions)] {
			newest = append(newest, fault.Plain(strings.TrimPrefix(v.ref, "refs/tags/")))
		}
		have = "its newest versions are " + strings.Join(newest, ", ")
		if more := len(versions) - len(newest); more > 0 {
			have += fmt.Sprintf(" and %d older", more)
		}
	}
	if others > 0 {
		have += fmt.Sprintf(" (other tags: %d)", others)
	}
	return fault.New(fault.MissingRef, "%s has no tag with a version in %q: %s; push one, or change ref.semver (a pre-release matches only a range that names one, such as >=1.0.0-0)", where, text, have)
}
