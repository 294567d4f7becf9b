// Package git reads Git's data on disk: packs, loose objects, directories of a commit, and the history of
// commits. It knows neither servers nor the configuration.
//
//	Store      objects by name, from packs and loose files, verified and cached
//	Directory  a decoded tree object, sorted by name
//	Tree       the files of a commit, as a tree.Tree over a Store
//	Verifier   checks that everything below a tree is present
//	History    commits and their parents: merge bases, ancestors
//	Dirs       the directories of a local repository
//
// Rules:
//
//   - An object whose content does not match its name is damaged. It never counts as missing.
//   - A tree is used only after Verifier has checked it completely.
//   - weir indexes packs from a server itself, within PackLimits, before anything reads them.
//   - A walk over the history is bounded by the number of commits.
package git

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/objfile"

	"github.com/weir-gitops/weir/render/tree"
	"github.com/weir-gitops/weir/source/fault"
)

const (
	// maxMetaBytes bounds a commit or tag. MaxListingBytes bounds a tree object: 200,000 entries with names
	// of twenty letters, which fit into the cache.
	maxMetaBytes    = 1 << 20
	MaxListingBytes = 10 << 20
	// deltaCacheBytes, treeCacheBytes and blobCacheBytes bound the memory of a repository.
	deltaCacheBytes = 16 << 20
	treeCacheBytes  = 48 << 20
	blobCacheBytes  = 16 << 20
)

// ErrReplaced means that the mirror was recreated after the tree of a pull request was returned, and no
// longer contains the pull request. Pull fetches it again.
var ErrReplaced = errors.New("the mirror was made again; ask for the pull request once more")

// Store reads the objects of a repository: packs and loose objects in its object directories. go-git's own
// storage is not used. It is not safe for concurrent use, and after an error while loading pack indexes it
// treats all later objects as missing.
//
// One mutex protects all reads. Decoded trees and small blobs are cached by hash, so that most reads need no
// disk access. A read that fails lists the packs and tries again, because Git may have repacked meanwhile.
type Store struct {
	// dirs returns the object directories, including alternates.
	dirs func() ([]string, error)
	// Loose is true if loose objects may exist. A mirror has none.
	Loose bool
	// Damaged is called if an object cannot be read. missing reports whether it is absent. Damaged may be
	// nil.
	Damaged func(missing bool)
	// Epoch counts the calls of Exchange, from 1.
	Epoch atomic.Int64
	// Steady is locked for reading during several reads that need the same packs.
	Steady sync.RWMutex

	mu     sync.Mutex
	loaded bool
	paths  []string
	packs  []*pack
	bases  cache.Object
	trees  *lru[*Directory]
	blobs  *lru[[]byte]
}

func NewStore(loose bool, dirs func() ([]string, error)) *Store {
	db := &Store{
		dirs: dirs, Loose: loose,
		bases: cache.NewObjectLRU(deltaCacheBytes),
		trees: newLRU[*Directory](treeCacheBytes),
		blobs: newLRU[[]byte](blobCacheBytes),
	}
	db.Epoch.Store(1)
	return db
}

// Refresh lists the packs again. Packs that still exist stay open.
func (db *Store) Refresh() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.load()
}

// load lists and opens the packs. The caller holds the mutex. After an error nothing counts as loaded, so
// that no object can count as missing. If a pack disappears between listing and opening, the repository was
// repacked. A second attempt then finds the new packs.
func (db *Store) load() error {
	err := db.loadOnce()
	if err != nil {
		err = db.loadOnce()
	}
	return err
}

// loadOnce is one attempt of load. It keeps packs that are already open, and closes the ones that are gone.
func (db *Store) loadOnce() error {
	db.loaded = false
	paths, err := db.dirs()
	if err != nil {
		return err
	}
	have := map[string]*pack{}
	for _, p := range db.packs {
		have[p.base] = p
	}
	var packs []*pack
	for _, dir := range paths {
		bases, err := ListPacks(dir)
		if err != nil {
			return err
		}
		for _, base := range bases {
			p := have[base]
			if p == nil {
				if p, err = openPack(base); err != nil {
					return err
				}
			}
			delete(have, base)
			packs = append(packs, p)
		}
	}
	for _, gone := range have {
		gone.close()
	}
	db.paths, db.packs, db.loaded = paths, packs, true
	return nil
}

// add makes a newly installed pack visible.
func (db *Store) add(p *pack) {
	db.mu.Lock()
	defer db.mu.Unlock()
	for _, have := range db.packs {
		if have.base == p.base {
			return
		}
	}
	db.packs = append([]*pack{p}, db.packs...)
}

// PackCount returns the number of open packs.
func (db *Store) PackCount() int {
	db.mu.Lock()
	defer db.mu.Unlock()
	return len(db.packs)
}

// Close closes the files. A later read opens them again.
func (db *Store) Close() {
	db.mu.Lock()
	defer db.mu.Unlock()
	for _, p := range db.packs {
		p.close()
	}
	db.packs, db.loaded = nil, false
}

// Exchange runs swap, which replaces the packs, while no reader is active.
func (db *Store) Exchange(swap func() error) error {
	db.Steady.Lock()
	defer db.Steady.Unlock()
	db.mu.Lock()
	defer db.mu.Unlock()
	db.dropFiles()
	db.loaded = false
	db.Epoch.Add(1)
	if err := swap(); err != nil {
		return err
	}
	return db.load()
}

// Has reports whether an object is present. It neither reads the object nor lists the packs again.
func (db *Store) Has(h plumbing.Hash) (bool, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if !db.loaded {
		if err := db.load(); err != nil {
			return false, err
		}
	}
	for _, p := range db.packs {
		if ok, err := p.index.Contains(h); err == nil && ok {
			return true, nil
		}
	}
	if !db.Loose {
		return false, nil
	}
	for _, dir := range db.paths {
		if _, err := os.Lstat(loosePath(dir, h)); err == nil {
			return true, nil
		}
	}
	return false, nil
}

// Read returns an object's content, verified against its name. limit bounds the size in bytes. The caller
// must not change the result.
func (db *Store) Read(t plumbing.ObjectType, h plumbing.Hash, limit int64) ([]byte, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.readLocked(t, h, limit)
}

// Meta returns a commit or tag. It refuses one that is larger than people write, because several values are
// kept for the head of every pull request.
func (db *Store) Meta(t plumbing.ObjectType, h plumbing.Hash) ([]byte, error) {
	data, err := db.Read(t, h, maxMetaBytes)
	var tooLarge *tree.TooLargeError
	if errors.As(err, &tooLarge) {
		return nil, fault.New(fault.Unsupported, "%s has %d bytes, and a commit or tag at most %d", h, tooLarge.Size, maxMetaBytes)
	}
	return data, err
}

func (db *Store) readLocked(t plumbing.ObjectType, h plumbing.Hash, limit int64) ([]byte, error) {
	data, err := db.findLoaded(t, h, limit)
	if !mayHeal(err) {
		return data, err
	}
	db.dropFiles()
	db.loaded = false
	if data, err = db.findLoaded(t, h, limit); mayHeal(err) && db.Damaged != nil {
		var oe *fault.ObjectError
		db.Damaged(errors.As(err, &oe) && oe.Missing)
	}
	return data, err
}

func (db *Store) findLoaded(t plumbing.ObjectType, h plumbing.Hash, limit int64) ([]byte, error) {
	if !db.loaded {
		if err := db.load(); err != nil {
			return nil, err
		}
	}
	return db.find(t, h, limit)
}

// mayHeal reports whether err is damage that another read may repair after listing the packs again. It
// returns false for an object that exists but has another type than expected.
func mayHeal(err error) bool {
	var oe *fault.ObjectError
	return err != nil && fault.ReasonOf(err) == fault.Corrupt && (!errors.As(err, &oe) || !oe.WrongType)
}

// dropFiles closes the packs, so that a second attempt reads the current files.
func (db *Store) dropFiles() {
	for _, p := range db.packs {
		p.close()
	}
	db.packs = nil
}

// find returns the content of an object of type t. It searches the packs, and then loose objects if the
// store has them. The error for an absent object is an ObjectError with Missing.
func (db *Store) find(t plumbing.ObjectType, h plumbing.Hash, limit int64) ([]byte, error) {
	for _, p := range db.packs {
		if ok, err := p.index.Contains(h); err == nil && ok {
			return p.read(t, h, limit, db.bases)
		}
	}
	if db.Loose {
		for _, dir := range db.paths {
			data, err := readLoose(loosePath(dir, h), t, h, limit)
			if err == nil || !errors.Is(err, os.ErrNotExist) {
				return data, err
			}
		}
	}
	return nil, &fault.ObjectError{Hash: h, Text: "the object is missing", Missing: true}
}

// replaced reports whether an epoch is over; epoch 0 never is. The caller holds the mutex.
func (db *Store) replaced(epoch int64) bool { return epoch != 0 && epoch != db.Epoch.Load() }

// blob returns the content of a file and caches it. If epoch is not 0 and over, it returns ErrReplaced.
func (db *Store) blob(h plumbing.Hash, limit, epoch int64) ([]byte, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.replaced(epoch) {
		return nil, ErrReplaced
	}
	if data, ok := db.blobs.get(h); ok {
		if int64(len(data)) > limit {
			return nil, &tree.TooLargeError{Size: int64(len(data)), Limit: limit}
		}
		return data, nil
	}
	data, err := db.readLocked(plumbing.BlobObject, h, limit)
	if err != nil {
		return nil, err
	}
	db.blobs.put(h, data, int64(len(data))+64)
	return data, nil
}

// Tree returns a decoded directory and caches it.
func (db *Store) Tree(h plumbing.Hash) (*Directory, error) { return db.treeIn(h, 0) }

// treeIn is like Tree. If epoch is not 0 and over, it returns ErrReplaced.
func (db *Store) treeIn(h plumbing.Hash, epoch int64) (*Directory, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.replaced(epoch) {
		return nil, ErrReplaced
	}
	if n, ok := db.trees.get(h); ok {
		return n, nil
	}
	data, err := db.readLocked(plumbing.TreeObject, h, MaxListingBytes)
	var tooLarge *tree.TooLargeError
	if errors.As(err, &tooLarge) {
		return nil, fault.New(fault.Unsupported, "the directory %s has a listing of %d bytes; split it", h, tooLarge.Size)
	}
	if err != nil {
		return nil, err
	}
	n, err := decodeTree(data)
	if err != nil {
		return nil, &fault.ObjectError{Hash: h, Text: err.Error(), Malformed: true}
	}
	db.trees.put(h, n, int64(len(data))*4+128)
	return n, nil
}

func Object(t plumbing.ObjectType, data []byte) *plumbing.MemoryObject {
	o := &plumbing.MemoryObject{}
	o.SetType(t)
	_, _ = o.Write(data) // To memory.
	return o
}

func loosePath(dir string, h plumbing.Hash) string {
	name := h.String()
	return filepath.Join(dir, name[:2], name[2:])
}

// readLoose reads a loose object. Only a missing file results in os.ErrNotExist.
func readLoose(file string, t plumbing.ObjectType, h plumbing.Hash, limit int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, os.ErrNotExist
		}
		return nil, fault.Object(h, "the loose object", err)
	}
	defer func() { _ = f.Close() }() // Opened for reading only.
	r, err := objfile.NewReader(f)
	if err != nil {
		return nil, fault.Object(h, "the loose object is damaged", err)
	}
	defer func() { _ = r.Close() }() // Returns a buffer to a pool.
	got, size, err := r.Header()
	switch {
	case err != nil:
		return nil, fault.Object(h, "the loose object is damaged", err)
	case got != t:
		return nil, &fault.ObjectError{Hash: h, Text: fmt.Sprintf("it is a %s, not a %s", got, t), WrongType: true}
	case size > limit:
		return nil, &tree.TooLargeError{Size: size, Limit: limit}
	}
	data, err := io.ReadAll(io.LimitReader(r, size+1))
	if err != nil || int64(len(data)) != size || plumbing.ComputeHash(t, data) != h {
		return nil, &fault.ObjectError{Hash: h, Text: "the loose object is damaged"}
	}
	return data, nil
}
