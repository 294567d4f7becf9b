package tree

import (
	"crypto/sha1" //nolint:gosec // Git's object names are SHA-1.
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"sort"
	"strings"
)

// Map is a Tree of files in memory, for tests and generated input. Keys are Tree paths; a value
// that starts with "symlink:" is a link to the path after it.
type Map map[string]string

const linkPrefix = "symlink:"

// Lookup returns the entry at p.
func (m Map) Lookup(p string) (Entry, error) {
	if text, ok := m[p]; ok {
		e := Entry{Name: path.Base(p), Mode: File, Size: int64(len(text))}
		if link, isLink := strings.CutPrefix(text, linkPrefix); isLink {
			e.Mode, text, e.Size = Symlink, link, int64(len(link))
		}
		e.Hash = BlobHash([]byte(text))
		return e, nil
	}
	for k := range m {
		if p == "." || strings.HasPrefix(k, p+"/") {
			return Entry{Name: path.Base(p), Mode: Dir, Size: -1}, nil
		}
	}
	return Entry{}, &fs.PathError{Op: "lookup", Path: p, Err: fs.ErrNotExist}
}

// ReadFile returns a file's content or a link's text.
func (m Map) ReadFile(p string) ([]byte, error) {
	text, ok := m[p]
	if !ok {
		return nil, &fs.PathError{Op: "read", Path: p, Err: fs.ErrNotExist}
	}
	return []byte(strings.TrimPrefix(text, linkPrefix)), nil
}

// ReadDir lists the directory p, sorted by name.
func (m Map) ReadDir(p string) ([]Entry, error) {
	prefix := p + "/"
	if p == "." {
		prefix = ""
	}
	names := map[string]bool{}
	for k := range m {
		if rest, ok := strings.CutPrefix(k, prefix); ok {
			name, _, _ := strings.Cut(rest, "/")
			names[name] = true
		}
	}
	if len(names) == 0 && p != "." {
		return nil, &fs.PathError{Op: "readdir", Path: p, Err: fs.ErrNotExist}
	}
	var out []Entry
	for name := range names {
		e, err := m.Lookup(prefix + name)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out, nil
}

// BlobHash returns Git's object name for a blob with this content, in hex.
func BlobHash(content []byte) string {
	h := sha1.New() //nolint:gosec // Git's object names are SHA-1.
	fmt.Fprintf(h, "blob %d\x00", len(content))
	h.Write(content)
	return hex.EncodeToString(h.Sum(nil))
}
