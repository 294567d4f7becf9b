package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/targetspec"
	"github.com/weir-gitops/weir/source/transport"
)

// SourceError means that it is unclear which source is meant. Hint is the remedy.
type SourceError struct{ Message, Hint string }

// Error returns the message.
func (e *SourceError) Error() string { return e.Message }

// Feeds reports whether a target with the name may belong to the source.
func (c *Config) Feeds(source, name string) bool {
	return slices.ContainsFunc(c.Targets, func(t targetspec.Target) bool { return t.Source == source && targetspec.Overlap(t.Name, name) })
}

// SourceOf returns the source that a repository replaces: the source of the named targets, or the source
// with the same repository, or the only source. repositories lists the identity of the repository at its
// own location before the identities of the repositories that it is a clone of. For a clone of another
// repository, the user must name a target.
func (c *Config) SourceOf(targets, repositories []string) (Source, error) {
	var all []string
	var named, same, both []Source
	for _, s := range c.Sources {
		all = append(all, fmt.Sprintf("%s (%s)", s.Name, s.URL))
		feeds := len(targets) > 0 && !slices.ContainsFunc(targets, func(t string) bool { return !c.Feeds(s.Name, t) })
		is := slices.Contains(repositories, transport.ID(s.URL))
		if feeds {
			named = append(named, s)
		}
		if is {
			same = append(same, s)
		}
		if feeds && is {
			both = append(both, s)
		}
	}
	list := "the sources are " + strings.Join(all, ", ")
	switch {
	case len(both) == 1:
		return both[0], nil
	case len(named) == 1:
		return named[0], nil
	case len(targets) > 0 && len(named) == 0:
		return Source{}, &SourceError{"no source gives the targets " + strings.Join(targets, ", "), list}
	case len(targets) == 0 && len(same) == 1:
		return same[0], nil
	case len(targets) == 0 && len(same) == 0 && len(repositories) > 1:
		return Source{}, &SourceError{"the repository is not a clone of any source", "name a target to plan the repository in place of that target's source; " + list}
	case len(c.Sources) == 1:
		return c.Sources[0], nil
	}
	return Source{}, &SourceError{"it is unclear which source you mean", "name a target of the source that you mean; " + list}
}

// AsSourceError returns the SourceError of an error, or nil.
func AsSourceError(err error) (wrong *SourceError) {
	errors.As(err, &wrong)
	return wrong
}
