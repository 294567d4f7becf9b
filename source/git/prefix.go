package git

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// Named returns the objects whose names start with prefix.
func (db *Store) Named(prefix string) ([]plumbing.Hash, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if !db.loaded {
		if err := db.load(); err != nil {
			return nil, err
		}
	}
	found := map[plumbing.Hash]bool{}
	for _, p := range db.packs {
		p.named(prefix, found)
	}
	if db.Loose {
		for _, dir := range db.paths {
			entries, err := os.ReadDir(filepath.Join(dir, prefix[:2]))
			if err != nil {
				continue // no object has this prefix
			}
			for _, e := range entries {
				if name := prefix[:2] + e.Name(); IsHash(name) && strings.HasPrefix(name, prefix) {
					found[plumbing.NewHash(name)] = true
				}
			}
		}
	}
	out := make([]plumbing.Hash, 0, len(found))
	for h := range found {
		out = append(out, h)
	}
	plumbing.HashesSort(out)
	return out, nil
}

// named adds the objects of the pack whose names start with prefix, which has at least two digits.
func (p *pack) named(prefix string, found map[plumbing.Hash]bool) {
	first := plumbing.NewHash(prefix + strings.Repeat("0", 40-len(prefix)))
	slot := p.index.FanoutMapping[first[0]]
	if slot < 0 || slot >= len(p.index.Names) {
		return
	}
	names := p.index.Names[slot]
	const size = len(plumbing.ZeroHash)
	low, high := 0, len(names)/size
	for low < high { // the first one that does not sort before it
		mid := (low + high) / 2
		if slices.Compare(names[mid*size:(mid+1)*size], first[:]) < 0 {
			low = mid + 1
		} else {
			high = mid
		}
	}
	for ; (low+1)*size <= len(names); low++ {
		h := plumbing.Hash(names[low*size : (low+1)*size])
		if !strings.HasPrefix(h.String(), prefix) {
			return
		}
		found[h] = true
	}
}

func IsHash(s string) bool {
	if len(s) != 40 {
		return false
	}
	for _, c := range s {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
