package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/weir-gitops/weir/render/tree"
)

// Glob is a target's path: a plain one, or one whose wildcards * and ? match
// within one path element, as in overlays/*/nodes. A wildcard never matches the
// dot at a name's start. Directories match; a glob whose last element ends in
// .yaml or .yml matches files instead.
type Glob struct {
	elements []string
	patterns []*regexp.Regexp // nil for an element without a wildcard
	count    int
	files    bool
}

// ParseGlob reads a target's path.
func ParseGlob(p string) (Glob, error) {
	c, err := cleanPath(p)
	if err != nil {
		return Glob{}, err
	}
	g := Glob{elements: strings.Split(c, "/")}
	for _, e := range g.elements {
		if strings.ContainsAny(e, "[]{}") || strings.Contains(e, "**") {
			return Glob{}, fmt.Errorf("%q: the wildcards of a path are * and ?, each within one path element", p)
		}
		if !strings.ContainsAny(e, "*?") {
			g.patterns = append(g.patterns, nil)
			continue
		}
		g.count += strings.Count(e, "*") + strings.Count(e, "?")
		quoted := strings.NewReplacer(`\*`, `(.+)`, `\?`, `(.)`).Replace(regexp.QuoteMeta(e))
		pattern, err := regexp.Compile("^" + quoted + "$")
		if err != nil {
			return Glob{}, fmt.Errorf("%q is no path: %w", p, err)
		}
		g.patterns = append(g.patterns, pattern)
	}
	if g.count > 9 {
		return Glob{}, fmt.Errorf("%q has more than 9 wildcards", p)
	}
	ext := path.Ext(g.elements[len(g.elements)-1])
	g.files = ext == ".yaml" || ext == ".yml"
	return g, nil
}

// Wildcards is how many wildcards the path has.
func (g Glob) Wildcards() int { return g.count }

// Match is one path that a Glob stands for.
type Match struct {
	Path string
	// Texts are what the wildcards stand for, in order.
	Texts []string
}

// Expand lists what the glob stands for in t, in order. A path without
// wildcards is its own match, whether or not it exists. An error means that t
// could not be read.
func (g Glob) Expand(t tree.Tree) ([]Match, error) {
	if g.count == 0 {
		return []Match{{Path: strings.Join(g.elements, "/")}}, nil
	}
	found := []Match{{Path: "."}}
	for i, e := range g.elements {
		last := i == len(g.elements)-1
		var next []Match
		for _, m := range found {
			more, err := g.step(t, m, e, g.patterns[i], last)
			if err != nil {
				return nil, fmt.Errorf("expand path %s: %w", strings.Join(g.elements, "/"), err)
			}
			next = append(next, more...)
		}
		found = next
	}
	return found, nil
}

func (g Glob) step(t tree.Tree, from Match, element string, pattern *regexp.Regexp, last bool) ([]Match, error) {
	if pattern == nil {
		entry, err := t.Lookup(path.Join(from.Path, element))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil || !g.fits(entry, last) {
			return nil, err
		}
		return []Match{{Path: path.Join(from.Path, element), Texts: from.Texts}}, nil
	}
	entries, err := t.ReadDir(from.Path)
	if err != nil {
		return nil, err
	}
	var out []Match
	for _, entry := range entries {
		texts := pattern.FindStringSubmatch(entry.Name)
		if texts == nil || !g.fits(entry, last) || strings.HasPrefix(entry.Name, ".") && !strings.HasPrefix(element, ".") {
			continue
		}
		all := append(append([]string(nil), from.Texts...), texts[1:]...)
		out = append(out, Match{Path: path.Join(from.Path, entry.Name), Texts: all})
	}
	return out, nil
}

func (g Glob) fits(e tree.Entry, last bool) bool {
	if last && g.files {
		return e.Mode.IsFile()
	}
	return e.Mode == tree.Dir
}

// NameFor puts a match's texts into a target's name. A character that a name
// cannot hold becomes a dash.
func NameFor(template string, m Match) string {
	name := placeholder.ReplaceAllStringFunc(template, func(p string) string {
		if n := int(p[1] - '0'); n <= len(m.Texts) {
			return m.Texts[n-1]
		}
		return p
	})
	return strings.Map(func(r rune) rune {
		if r > 0x7e || !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", r) {
			return '-'
		}
		return r
	}, name)
}
