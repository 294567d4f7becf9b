package targetspec

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/weir-gitops/weir/render/lazyregexp"
	"github.com/weir-gitops/weir/render/tree"
)

// Placeholder matches {1} to {9}, which stand for the texts that the path's wildcards match.
var Placeholder = lazyregexp.New(`\{([1-9])\}`)

// Glob is a target's path, with or without wildcards. The wildcards * and ? match within one path element,
// as in overlays/*/nodes, and never match a dot at the start of a name. A glob matches directories, or files
// if its last element ends in .yaml or .yml.
type Glob struct {
	elements []string
	patterns []*regexp.Regexp // nil for an element without a wildcard
	count    int
	files    bool
}

// ParseGlob reads a target's path.
func ParseGlob(p string) (Glob, error) {
	c, err := CleanPath(p)
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
			return Glob{}, fmt.Errorf("%q is not a path: %w", p, err)
		}
		g.patterns = append(g.patterns, pattern)
	}
	if g.count > 9 {
		return Glob{}, fmt.Errorf("%q has more than 9 wildcards", p)
	}
	g.files = isFile(c)
	return g, nil
}

// isFile reports whether a target's path names a file.
func isFile(p string) bool { return path.Ext(p) == ".yaml" || path.Ext(p) == ".yml" }

// String returns the path.
func (g Glob) String() string { return strings.Join(g.elements, "/") }

// OfFiles reports whether the glob matches files instead of directories.
func (g Glob) OfFiles() bool { return g.files }

// Wildcards returns the number of wildcards in the path.
func (g Glob) Wildcards() int { return g.count }

// Match is one path that a Glob matches.
type Match struct {
	Path string
	// Texts are the matches of the wildcards, in order.
	Texts []string
}

// maxVisited bounds the number of names that Expand reads. It is greater than a commit may have.
const maxVisited = 500_000

// ErrTooManyNames says that too many names would have to be checked for a path.
var ErrTooManyNames = fmt.Errorf("its wildcards lead through more than %d files and directories; write more of the path out", maxVisited)

// Expand returns the matches of the glob in t, in order, at most most of them, and the number of all
// matches. A path without wildcards matches itself, even if it does not exist. An error means that t could
// not be read, or has too many names.
func (g Glob) Expand(t tree.Tree, most int) (matches []Match, found int, err error) {
	if g.count == 0 {
		return []Match{{Path: g.String()}}, 1, nil
	}
	x := expansion{glob: g, tree: t, most: most}
	if err := x.below(".", nil, 0); err != nil {
		return nil, 0, fmt.Errorf("expand path %s: %w", g, err)
	}
	return x.matches, x.found, nil
}

// expansion is an Expand in progress. It reads one directory after the other, so it only keeps the matches
// in memory.
type expansion struct {
	glob    Glob
	tree    tree.Tree
	most    int
	matches []Match
	found   int
	visited int
}

// below expands the elements from index n on in a directory that the texts led to.
func (x *expansion) below(dir string, texts []string, n int) error {
	element, pattern := x.glob.elements[n], x.glob.patterns[n]
	if pattern == nil {
		entry, err := x.tree.Lookup(path.Join(dir, element))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		return x.add(dir, entry, element, texts, n)
	}
	entries, err := x.tree.ReadDir(dir)
	if err != nil {
		return err
	}
	if x.visited += len(entries); x.visited > maxVisited {
		return ErrTooManyNames
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name, ".") && !strings.HasPrefix(element, ".") {
			continue
		}
		if m := pattern.FindStringSubmatch(entry.Name); m != nil {
			if err := x.add(dir, entry, entry.Name, append(texts[:len(texts):len(texts)], m[1:]...), n); err != nil {
				return err
			}
		}
	}
	return nil
}

// add continues with an entry of a directory that matches element n.
func (x *expansion) add(dir string, entry tree.Entry, name string, texts []string, n int) error {
	last := n == len(x.glob.elements)-1
	switch {
	case !x.glob.fits(entry, last):
		return nil
	case !last:
		return x.below(path.Join(dir, name), texts, n+1)
	}
	if x.found++; x.found <= x.most {
		x.matches = append(x.matches, Match{Path: path.Join(dir, name), Texts: texts})
	}
	return nil
}

func (g Glob) fits(e tree.Entry, last bool) bool {
	if last && g.files {
		return e.Mode.IsFile()
	}
	return e.Mode == tree.Dir
}

// NameFor fills a match's texts into a target's name. Characters that a name must not contain become dashes.
func NameFor(template string, m Match) string {
	name := Placeholder.ReplaceAllStringFunc(template, func(p string) string {
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

// CleanPath returns a target's path in the form of tree paths.
func CleanPath(p string) (string, error) {
	c := path.Clean(p)
	if path.IsAbs(c) || c == ".." || strings.HasPrefix(c, "../") || strings.Contains(p, "\\") {
		return "", fmt.Errorf("%q is not a path below the source's root", p)
	}
	return c, nil
}
