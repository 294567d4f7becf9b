package git

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"github.com/weir-gitops/weir/render/tree"
	"github.com/weir-gitops/weir/source/fault"
)

// pack is a pack file with its index in memory. The file is opened at the first read. Except for
// index.Contains, it is not safe for concurrent use.
type pack struct {
	// base is the path without .pack or .idx.
	base  string
	index *idxfile.MemoryIndex
	file  *packfile.Packfile
}

// ListPacks returns the packs below an objects directory, without extension, sorted. It omits packs without
// an index, which are still being written.
func ListPacks(objects string) ([]string, error) {
	dir := filepath.Join(objects, "pack")
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Unread(err, "list packs")
	}
	packs := map[string]int{}
	for _, e := range entries {
		ext := filepath.Ext(e.Name())
		if strings.HasPrefix(e.Name(), "pack-") && (ext == ".pack" || ext == ".idx") {
			packs[filepath.Join(dir, strings.TrimSuffix(e.Name(), ext))]++
		}
	}
	var out []string
	for base, files := range packs {
		if files == 2 {
			out = append(out, base)
		}
	}
	sort.Strings(out)
	return out, nil
}

func openPack(base string) (*pack, error) {
	f, err := os.Open(base + ".idx")
	if err != nil {
		return nil, fault.Unread(err, "open pack index")
	}
	defer func() { _ = f.Close() }() // Opened for reading only.
	index := idxfile.NewMemoryIndex()
	if err := idxfile.NewDecoder(f).Decode(index); err != nil {
		return nil, fault.Unread(err, "read pack index %s", filepath.Base(base))
	}
	return &pack{base: base, index: index}, nil
}

// open opens the pack file unless it is open. bases caches the bases of deltas.
func (p *pack) open(bases cache.Object) error {
	if p.file != nil {
		return nil
	}
	f, err := osfs.New(filepath.Dir(p.base)).Open(filepath.Base(p.base) + ".pack")
	if err != nil {
		if fault.Scarce(err) {
			return fmt.Errorf("open pack: %w", err)
		}
		return fmt.Errorf("open pack: %v", err) //nolint:errorlint // A missing pack must not seem a missing path.
	}
	// Without a file system, the library reads objects into memory immediately, instead of returning handles
	// that open the file later.
	p.file = packfile.NewPackfileWithCache(p.index, nil, f, bases, 0)
	return nil
}

func (p *pack) close() {
	if p.file != nil {
		_ = p.file.Close() // Opened for reading only.
		p.file = nil
	}
}

// read returns an object in the index. The library has panicked on damaged data before. A panic counts as a
// damaged object.
func (p *pack) read(t plumbing.ObjectType, h plumbing.Hash, limit int64, bases cache.Object) (data []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			data, err = nil, &fault.ObjectError{Hash: h, Text: fmt.Sprintf("the pack is damaged: %v", r)}
		}
	}()
	if err := p.open(bases); err != nil {
		return nil, fault.Object(h, "the pack", err)
	}
	offset, err := p.index.FindOffset(h)
	if err != nil {
		return nil, &fault.ObjectError{Hash: h, Text: fmt.Sprintf("find in pack: %v", err)}
	}
	size, err := p.file.GetSizeByOffset(offset)
	if err != nil {
		return nil, fault.Object(h, "the pack is damaged", err)
	}
	if size > limit {
		return nil, &tree.TooLargeError{Size: size, Limit: limit}
	}
	obj, err := p.file.Get(h)
	if err != nil {
		return nil, fault.Object(h, "the pack is damaged", err)
	}
	if obj.Type() != t {
		return nil, &fault.ObjectError{Hash: h, Text: fmt.Sprintf("it is a %s, not a %s", obj.Type(), t), WrongType: true}
	}
	r, err := obj.Reader()
	if err != nil {
		return nil, &fault.ObjectError{Hash: h, Text: err.Error()}
	}
	defer func() { _ = r.Close() }() // In memory.
	data, err = io.ReadAll(r)
	if err != nil || plumbing.ComputeHash(t, data) != h {
		return nil, &fault.ObjectError{Hash: h, Text: "the pack is damaged: content and name differ"}
	}
	return data, nil
}
