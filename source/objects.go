package source

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
)

const (
	// maxMetaBytes bounds a commit or tag, maxListingBytes a tree object: one of
	// 200,000 entries with names of twenty letters, which the cache has room for.
	maxMetaBytes    = 1 << 20
	maxListingBytes = 10 << 20
	// deltaCacheBytes, treeCacheBytes and blobCacheBytes bound what one
	// repository holds in memory.
	deltaCacheBytes = 16 << 20
	treeCacheBytes  = 48 << 20
	blobCacheBytes  = 16 << 20
)

// objectDB reads the objects of one repository: packs and loose objects of its
// object directories. go-git's own storage is not used, because it is not safe
// for several goroutines, and after an error while loading pack indexes it takes
// every later object for absent.
//
// All reads go through one mutex; decoded trees and small blobs are cached by
// hash, so that most reads touch no disk. A read that fails lists the packs once
// more and tries again, since Git may have repacked meanwhile.
type objectDB struct {
	// dirs lists the object directories, alternates included.
	dirs func() ([]string, error)
	// loose tells whether loose objects may exist. A mirror has none.
	loose bool
	// damaged is called when an object cannot be read, and told whether it is
	// missing. It may be nil.
	damaged func(missing bool)
	// epoch counts how often exchange put other packs into place, from 1.
	epoch atomic.Int64
	// steady is held for reading while several reads have to see the same packs.
	steady sync.RWMutex

	mu     sync.Mutex
	loaded bool
	paths  []string
	packs  []*pack
	bases  cache.Object
	trees  *lru[*treeNode]
	blobs  *lru[[]byte]
}

func newObjectDB(loose bool, dirs func() ([]string, error)) *objectDB {
	db := &objectDB{
		dirs: dirs, loose: loose,
		bases: cache.NewObjectLRU(deltaCacheBytes),
		trees: newLRU[*treeNode](treeCacheBytes),
		blobs: newLRU[[]byte](blobCacheBytes),
	}
	db.epoch.Store(1)
	return db
}

// refresh lists the packs again. Those that are still there stay open.
func (db *objectDB) refresh() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.load()
}

// load needs the mutex. After an error nothing counts as loaded, so that no
// object can be taken for absent. A pack that goes away between being listed
// and being opened was repacked: the second try sees what replaced it.
func (db *objectDB) load() error {
	err := db.loadOnce()
	if err != nil {
		err = db.loadOnce()
	}
	return err
}

func (db *objectDB) loadOnce() error {
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
		bases, err := listPacks(dir)
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

// add makes a pack visible that was just installed.
func (db *objectDB) add(p *pack) {
	db.mu.Lock()
	defer db.mu.Unlock()
	for _, have := range db.packs {
		if have.base == p.base {
			return
		}
	}
	db.packs = append([]*pack{p}, db.packs...)
}

// packCount is the number of packs that are open now.
func (db *objectDB) packCount() int {
	db.mu.Lock()
	defer db.mu.Unlock()
	return len(db.packs)
}

// close releases the files. A later read opens them again.
func (db *objectDB) close() {
	db.mu.Lock()
	defer db.mu.Unlock()
	for _, p := range db.packs {
		p.close()
	}
	db.packs, db.loaded = nil, false
}

// exchange runs swap, which puts other packs into place, while nobody reads.
func (db *objectDB) exchange(swap func() error) error {
	db.steady.Lock()
	defer db.steady.Unlock()
	db.mu.Lock()
	defer db.mu.Unlock()
	db.dropFiles()
	db.loaded = false
	db.epoch.Add(1)
	if err := swap(); err != nil {
		return err
	}
	return db.load()
}

// has reports whether an object is present, without reading it and without
// listing the packs again.
func (db *objectDB) has(h plumbing.Hash) (bool, error) {
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
	if !db.loose {
		return false, nil
	}
	for _, dir := range db.paths {
		if _, err := os.Lstat(loosePath(dir, h)); err == nil {
			return true, nil
		}
	}
	return false, nil
}

// read gives an object's content, verified against its name. limit bounds the
// size in bytes. The result must not be changed.
func (db *objectDB) read(t plumbing.ObjectType, h plumbing.Hash, limit int64) ([]byte, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.readLocked(t, h, limit)
}

// meta gives a commit or tag. One that is larger than any text that people write is
// refused: of each pull request's head several things are kept.
func (db *objectDB) meta(t plumbing.ObjectType, h plumbing.Hash) ([]byte, error) {
	data, err := db.read(t, h, maxMetaBytes)
	var tooLarge *tree.TooLargeError
	if errors.As(err, &tooLarge) {
		return nil, faultf(Unsupported, "%s has %d bytes, and a commit or tag at most %d", h, tooLarge.Size, maxMetaBytes)
	}
	return data, err
}

func (db *objectDB) readLocked(t plumbing.ObjectType, h plumbing.Hash, limit int64) ([]byte, error) {
	data, err := db.findLoaded(t, h, limit)
	if !mayHeal(err) {
		return data, err
	}
	db.dropFiles()
	db.loaded = false
	if data, err = db.findLoaded(t, h, limit); mayHeal(err) && db.damaged != nil {
		var oe *objectError
		db.damaged(errors.As(err, &oe) && oe.missing)
	}
	return data, err
}

func (db *objectDB) findLoaded(t plumbing.ObjectType, h plumbing.Hash, limit int64) ([]byte, error) {
	if !db.loaded {
		if err := db.load(); err != nil {
			return nil, err
		}
	}
	return db.find(t, h, limit)
}

// mayHeal tells whether err is damage, so that reading again, after listing the
// packs again, may succeed: not where the object is there and merely not what
// was asked for.
func mayHeal(err error) bool {
	var oe *objectError
	return err != nil && reasonOf(err) == Corrupt && (!errors.As(err, &oe) || !oe.wrongType)
}

// dropFiles closes the packs, so that a second try reads what is there now.
func (db *objectDB) dropFiles() {
	for _, p := range db.packs {
		p.close()
	}
	db.packs = nil
}

func (db *objectDB) find(t plumbing.ObjectType, h plumbing.Hash, limit int64) ([]byte, error) {
	for _, p := range db.packs {
		if ok, err := p.index.Contains(h); err == nil && ok {
			return p.read(t, h, limit, db.bases)
		}
	}
	if db.loose {
		for _, dir := range db.paths {
			data, err := readLoose(loosePath(dir, h), t, h, limit)
			if err == nil || !errors.Is(err, os.ErrNotExist) {
				return data, err
			}
		}
	}
	return nil, &objectError{hash: h, text: "the object is missing", missing: true}
}

// replaced tells of an epoch other than 0 whether it is over. It needs the mutex.
func (db *objectDB) replaced(epoch int64) bool { return epoch != 0 && epoch != db.epoch.Load() }

// blob gives the content of a file, cached. After the end of epoch, where that is
// not 0, it gives ErrReplaced.
func (db *objectDB) blob(h plumbing.Hash, limit, epoch int64) ([]byte, error) {
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

// tree gives a decoded directory, cached.
func (db *objectDB) tree(h plumbing.Hash) (*treeNode, error) { return db.treeIn(h, 0) }

// treeIn is tree, and after the end of epoch, where that is not 0, ErrReplaced.
func (db *objectDB) treeIn(h plumbing.Hash, epoch int64) (*treeNode, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.replaced(epoch) {
		return nil, ErrReplaced
	}
	if n, ok := db.trees.get(h); ok {
		return n, nil
	}
	data, err := db.readLocked(plumbing.TreeObject, h, maxListingBytes)
	var tooLarge *tree.TooLargeError
	if errors.As(err, &tooLarge) {
		return nil, faultf(Unsupported, "the directory %s has a listing of %d bytes; split it", h, tooLarge.Size)
	}
	if err != nil {
		return nil, err
	}
	n, err := decodeTree(data)
	if err != nil {
		return nil, &objectError{hash: h, text: err.Error(), malformed: true}
	}
	db.trees.put(h, n, int64(len(data))*4+128)
	return n, nil
}

func encoded(t plumbing.ObjectType, data []byte) *plumbing.MemoryObject {
	o := &plumbing.MemoryObject{}
	o.SetType(t)
	_, _ = o.Write(data) // To memory.
	return o
}

func loosePath(dir string, h plumbing.Hash) string {
	name := h.String()
	return filepath.Join(dir, name[:2], name[2:])
}

// readLoose reads one loose object. Only absence is an os.ErrNotExist.
func readLoose(file string, t plumbing.ObjectType, h plumbing.Hash, limit int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, os.ErrNotExist
		}
		return nil, objectFault(h, "the loose object", err)
	}
	defer func() { _ = f.Close() }() // Opened for reading only.
	r, err := objfile.NewReader(f)
	if err != nil {
		return nil, objectFault(h, "the loose object is damaged", err)
	}
	defer func() { _ = r.Close() }() // Returns a buffer to a pool.
	got, size, err := r.Header()
	switch {
	case err != nil:
		return nil, objectFault(h, "the loose object is damaged", err)
	case got != t:
		return nil, &objectError{hash: h, text: fmt.Sprintf("it is a %s, not a %s", got, t), wrongType: true}
	case size > limit:
		return nil, &tree.TooLargeError{Size: size, Limit: limit}
	}
	data, err := io.ReadAll(io.LimitReader(r, size+1))
	if err != nil || int64(len(data)) != size || plumbing.ComputeHash(t, data) != h {
		return nil, &objectError{hash: h, text: "the loose object is damaged"}
	}
	return data, nil
}
