package git

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"github.com/weir-gitops/weir/source/fault"
)

// The index of a pack is made here. go-git's parser keeps every object in memory, with about 1,200 bytes
// of overhead: 6 MB of a pull request took 500 MiB. Here objects are read in order. The bases of deltas stay
// in memory until their deltas are resolved, and the largest family of each base is resolved last. So memory
// is bounded by PackLimits.deltaBytes, plus 80 bytes for each object.

// indexer makes the index of a pack.
type indexer struct {
	scanner *packfile.Scanner
	limits  PackLimits
	sum     plumbing.Hash
	objects []packedObject // by offset
	awaited []awaited      // by the base that they wait for
	// held is the number of bytes of the objects in memory.
	held int64
}

// packedObject is an object of a pack.
type packedObject struct {
	offset int64
	hash   plumbing.Hash // zero until it is known
	crc    uint32
	kind   plumbing.ObjectType
	// base is the index of the object that this one is a delta to. It is -1 if the object is not a delta, or
	// while the base is unknown. first and next form the list of deltas to an object; 0 ends the list.
	base, first, next int32
	// family is the number of its direct and indirect deltas, including itself.
	family int32
}

// awaited is a delta whose base is known by name, but not by offset.
type awaited struct {
	base  plumbing.Hash
	delta int32
}

// reservedType is an object type without a meaning.
const reservedType plumbing.ObjectType = 5

// maxChain bounds the length of a chain of deltas, as in Git.
const maxChain = 4095

// indexPack reads and checks a pack, and returns its index. The index is nil if the pack is empty.
func indexPack(f io.ReadSeeker, max PackLimits) (index *idxfile.MemoryIndex, sum plumbing.Hash, err error) {
	defer recoverPack(&err)
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, sum, fmt.Errorf("read pack: %w", err)
	}
	x := &indexer{scanner: packfile.NewScanner(f), limits: max}
	if err := x.scan(); err != nil || len(x.objects) == 0 {
		return nil, sum, err
	}
	if err := x.resolve(); err != nil {
		return nil, sum, err
	}
	return x.index(), x.sum, nil
}

// scan reads the pack and records the position of each object.
func (x *indexer) scan() error {
	_, count, err := x.scanner.Header()
	switch {
	case errors.Is(err, packfile.ErrEmptyPackfile):
		return fault.New(fault.Unreachable, "the server sent no pack")
	case err != nil:
		return brokenPack(err)
	case count > x.limits.Objects:
		return fault.New(fault.Unsupported, "the pack has %d objects, more than the limit of %d", count, x.limits.Objects)
	}
	x.objects = make([]packedObject, 0, count)
	for i := range int32(count) { //nolint:gosec // the limit is far below
		h, err := x.scanner.NextObjectHeader()
		if err != nil {
			return brokenPack(err)
		}
		if h.Length > x.limits.ObjectBytes {
			return oversized(h.Length, x.limits)
		}
		o := packedObject{offset: h.Offset, kind: h.Type, base: -1, family: 1}
		head, hasher := &headWriter{}, plumbing.NewHasher(h.Type, h.Length)
		var content io.Writer = hasher
		if h.Type.IsDelta() {
			content = head
		}
		n, crc, err := x.scanner.NextObject(content)
		switch {
		case err != nil:
			return brokenPack(err)
		case n != h.Length, !h.Type.Valid(), h.Type == reservedType:
			return brokenPack(fmt.Errorf("an object of type %d has %d bytes and says %d", h.Type, n, h.Length))
		case h.Type.IsDelta() && head.targetSize() > x.limits.ObjectBytes:
			return oversized(head.targetSize(), x.limits)
		}
		o.crc = crc
		switch h.Type {
		case plumbing.OFSDeltaObject:
			base, ok := slices.BinarySearchFunc(x.objects, h.OffsetReference, func(o packedObject, at int64) int { return cmp.Compare(o.offset, at) })
			if !ok {
				return brokenPack(fmt.Errorf("no object at offset %d", h.OffsetReference))
			}
			o.base = int32(base) //nolint:gosec // one of the objects
		case plumbing.REFDeltaObject:
			x.awaited = append(x.awaited, awaited{h.Reference, i})
		default:
			o.hash = hasher.Sum()
		}
		x.objects = append(x.objects, o)
	}
	if x.sum, err = x.scanner.Checksum(); err != nil {
		return brokenPack(err)
	}
	slices.SortStableFunc(x.awaited, func(a, b awaited) int { return bytes.Compare(a.base[:], b.base[:]) })
	return nil
}

// resolve resolves the deltas to find the names of their objects.
func (x *indexer) resolve() error {
	for i := int32(len(x.objects)) - 1; i > 0; i-- { //nolint:gosec // the limit is far below
		if o := &x.objects[i]; o.base >= 0 {
			base := &x.objects[o.base]
			o.next, base.first = base.first, i
			base.family += o.family
		}
	}
	for i := range x.objects {
		if o := &x.objects[i]; !o.kind.IsDelta() {
			if err := x.unfold(int32(i)); err != nil { //nolint:gosec // one of the objects
				return err
			}
		}
	}
	for i := range x.objects {
		if x.objects[i].hash.IsZero() {
			return brokenPack(packfile.ErrReferenceDeltaNotFound)
		}
	}
	return nil
}

// base is an object with unresolved deltas.
type base struct {
	content []byte
	deltas  []int32
}

// unfold resolves all direct and indirect deltas to an object.
func (x *indexer) unfold(root int32) error {
	kind := x.objects[root].kind
	deltas := x.deltas(root)
	if len(deltas) == 0 {
		return nil
	}
	content, err := x.content(root)
	if err != nil {
		return err
	}
	defer func() { x.held = 0 }()
	x.held = int64(len(content))
	for stack := []base{{content, deltas}}; len(stack) > 0; {
		if len(stack) > maxChain {
			return brokenPack(fmt.Errorf("the delta chain depth is more than %d", maxChain))
		}
		top := &stack[len(stack)-1]
		i := top.deltas[0]
		if content, err = x.apply(i, top.content); err != nil {
			return err
		}
		o := &x.objects[i]
		o.hash = plumbing.ComputeHash(kind, content)
		// The content of a base is released before its last delta is processed, so that a chain of any length
		// needs two objects in memory. The base stays on the stack for the depth limit.
		if top.deltas = top.deltas[1:]; len(top.deltas) == 0 {
			x.held -= int64(len(top.content))
			top.content = nil
		}
		if deltas := x.deltas(i); len(deltas) > 0 {
			x.held += int64(len(content))
			stack = append(stack, base{content, deltas})
		}
		for len(stack) > 0 && len(stack[len(stack)-1].deltas) == 0 {
			stack = stack[:len(stack)-1]
		}
	}
	return nil
}

// deltas returns the deltas to an object whose name is known, with the largest family last.
func (x *indexer) deltas(i int32) []int32 {
	o := &x.objects[i]
	var out []int32
	at, _ := slices.BinarySearchFunc(x.awaited, o.hash, func(a awaited, h plumbing.Hash) int { return bytes.Compare(a.base[:], h[:]) })
	for ; at < len(x.awaited) && x.awaited[at].base == o.hash; at++ {
		// If an object occurs twice, it is the base of each delta only once.
		if d := &x.objects[x.awaited[at].delta]; d.base < 0 {
			d.base = i
			out = append(out, x.awaited[at].delta)
		}
	}
	for d := o.first; d != 0; d = x.objects[d].next {
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b int32) int { return cmp.Compare(x.objects[a].family, x.objects[b].family) })
	return out
}

// apply returns the object that results from its delta and its base.
func (x *indexer) apply(i int32, base []byte) ([]byte, error) {
	delta, err := x.content(i)
	if err != nil {
		return nil, err
	}
	head := &headWriter{}
	_, _ = head.Write(delta)
	if need := x.held + int64(len(delta)) + head.targetSize(); need > x.limits.deltaBytes {
		return nil, fault.New(fault.Unsupported, "the history has large objects as deltas of each other, which take %d bytes to read, more than the limit of %d; use a repository without them", need, x.limits.deltaBytes)
	}
	out, err := packfile.PatchDelta(base, delta)
	if err != nil {
		return nil, brokenPack(err)
	}
	return out, nil
}

// content returns the content of an object in the pack, which may be a delta.
func (x *indexer) content(i int32) ([]byte, error) {
	h, err := x.scanner.SeekObjectHeader(x.objects[i].offset)
	if err != nil {
		return nil, brokenPack(err)
	}
	if h.Length > x.limits.deltaBytes {
		return nil, oversized(h.Length, x.limits)
	}
	b := bytes.NewBuffer(make([]byte, 0, h.Length))
	if _, _, err := x.scanner.NextObject(b); err != nil {
		return nil, brokenPack(err)
	}
	return b.Bytes(), nil
}

// index returns the index in go-git's form.
func (x *indexer) index() *idxfile.MemoryIndex {
	slices.SortFunc(x.objects, func(a, b packedObject) int {
		return cmp.Or(bytes.Compare(a.hash[:], b.hash[:]), cmp.Compare(a.offset, b.offset))
	})
	all := slices.CompactFunc(x.objects, func(a, b packedObject) bool { return a.hash == b.hash })
	index := &idxfile.MemoryIndex{Version: idxfile.VersionSupported, PackfileChecksum: x.sum}
	for first := range 256 {
		n := 0
		for n < len(all) && int(all[n].hash[0]) == first {
			n++
		}
		if index.FanoutMapping[first] = -1; n > 0 {
			index.FanoutMapping[first] = len(index.Names)
			names, crcs, offsets := make([]byte, 0, n*len(plumbing.ZeroHash)), make([]byte, 0, 4*n), make([]byte, 0, 4*n)
			for _, o := range all[:n] {
				names, crcs = append(names, o.hash[:]...), binary.BigEndian.AppendUint32(crcs, o.crc)
				at := uint32(o.offset) //nolint:gosec // below, or in the other table
				if o.offset > math.MaxInt32 {
					at = 1<<31 | uint32(len(index.Offset64)/8) //nolint:gosec // the limit is far below
					index.Offset64 = binary.BigEndian.AppendUint64(index.Offset64, uint64(o.offset))
				}
				offsets = binary.BigEndian.AppendUint32(offsets, at)
			}
			index.Names, index.CRC32, index.Offset32 = append(index.Names, names), append(index.CRC32, crcs), append(index.Offset32, offsets)
		}
		all = all[n:]
		index.Fanout[first] = uint32(n) //nolint:gosec // the limit is far below
		if first > 0 {
			index.Fanout[first] += index.Fanout[first-1]
		}
	}
	return index
}

// writeIndex writes the index of a pack next to the pack.
func writeIndex(file string, index *idxfile.MemoryIndex) error {
	f, err := os.CreateTemp(filepath.Dir(file), TempPrefix)
	if err != nil {
		return fmt.Errorf("write pack index: %w", err)
	}
	w := bufio.NewWriter(f)
	_, err = idxfile.NewEncoder(w).Encode(index)
	if err = errors.Join(err, w.Flush(), f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // otherwise sweep removes it
		return fmt.Errorf("write pack index: %w", err)
	}
	return nil
}
