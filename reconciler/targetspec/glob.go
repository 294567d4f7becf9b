package targetspec

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/weir-gitops/weir/render/tree"
)

// Placeholder is {1} to {9}, which stands for what the path's wildcards matched.
var Placeholder = regexp.MustCompile(`\{([1-9])\}`)

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

// isFile reports whether a target's path is that of a file.
func isFile(p string) bool { return path.Ext(p) == ".yaml" || path.Ext(p) == ".yml" }

// String is the path.
func (g Glob) String() string { return strings.Join(g.elements, "/") }

// OfFiles says that it matches files, not directories.
func (g Glob) OfFiles() bool { return g.files }

// Wildcards returns the number of wildcards in the path.
func (g Glob) Wildcards() int { return g.count }

// Match is one path that a Glob stands for.
type Match struct {
	Path string
	// Texts are the matches of the wildcards, in order.
	Texts []string
}

// maxVisited bounds the names that an Expand reads: more than a commit may have.
const maxVisited = 500_000

// ErrTooManyNames says that a path leads through more than can be looked at.
var ErrTooManyNames = fmt.Errorf("its wildcards lead through more than %d files and directories; write more of the path out", maxVisited)

// Expand lists the matches of the glob in t, in order, the first most of them, and
// counts them all. A path without wildcards is its own match, whether or not it exists.
// An error means that t could not be read, or is too large to look through.
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

// expansion is an Expand under way. It goes into one directory after the other, so
// that it holds no more than its matches, however many directories there are.
type expansion struct {
	glob    Glob
	tree    tree.Tree
	most    int
	matches []Match
	found   int
	visited int
}

// below expands the elements from n on in a directory that the texts led to.
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

// NameFor puts a match's texts into a target's name. A character that a name
// cannot hold becomes a dash.
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

// CleanPath is a target's path in the form of tree paths.
func CleanPath(p string) (string, error) {
	c := path.Clean(p)
	if path.IsAbs(c) || c == ".." || strings.HasPrefix(c, "../") || strings.Contains(p, "\\") {
		return "", fmt.Errorf("%q is not a path below the source's root", p)
	}
	return c, nil
}
