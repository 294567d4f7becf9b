package state

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// The library maps the file into memory and trusts its content. A missing page of a truncated file ends the
// process with a signal, and a page that points to itself causes an endless loop. So this code first reads
// all reachable pages from the file and checks every number. The format is the library's version 2: pages
// with a header of 16 bytes in the machine's byte order, and two meta pages. The valid meta page with the
// higher number is in force.
//
// The library's own Tx.Check is no replacement. It reads through the same memory map, in its own goroutine,
// which debug.SetPanicOnFault does not cover, and it follows cycles. In a test with 421 damaged copies of a
// file of 64 pages (changed bytes, swapped pages, truncation), Tx.Check crashed on 32 and did not finish
// within 30 seconds on 4. It accepted 40 of the truncated files.

const (
	headerSize     = 16
	branchItemSize = 16
	leafItemSize   = 16
	bucketSize     = 16
	metaSize       = 64
	boltMagic      = 0xED0CDAED
	boltVersion    = 2

	flagBranch   = 0x01
	flagLeaf     = 0x02
	flagFreelist = 0x10
	leafBucket   = 0x01

	noFreelist  = ^uint64(0)
	minPageSize = 1 << 10
	maxPageSize = 1 << 20
	// maxValue bounds the size of a page with its overflow pages, so that a damaged number does not fill the memory.
	maxValue = 256 << 20
	// maxDepth bounds the nesting of buckets and branches. Real files are far below it.
	maxDepth = 64
)

var native = binary.NativeEndian

// meta is the content of a meta page.
type meta struct {
	pageSize, root, freelist, pages, number uint64
}

// walk visits every reachable page.
type walk struct {
	file io.ReaderAt
	meta
	seen    map[uint64]bool
	records digest
}

// check returns the fault of a file of size bytes, or its fingerprint if the file can be opened.
func check(file io.ReaderAt, size int64) (fingerprint, error) {
	m, err := newestMeta(file, size)
	if err != nil {
		return fingerprint{}, err
	}
	// In this order a product cannot overflow.
	if m.pages > uint64(size) || m.pages*m.pageSize > uint64(size) { //nolint:gosec // a file's size is not negative
		return fingerprint{}, fmt.Errorf("it has %d bytes and its end is missing: %d pages of %d bytes were written", size, m.pages, m.pageSize)
	}
	w := &walk{file: file, meta: m, seen: map[uint64]bool{0: true, 1: true}}
	if err := w.tree(m.root, 0, "", limits{}); err != nil {
		return fingerprint{}, err
	}
	return fingerprint{m, w.records}, w.freelist()
}

// newestMeta returns the meta page in force.
func newestMeta(file io.ReaderAt, size int64) (meta, error) {
	var best meta
	found := false
	consider := func(at int64) {
		if m, ok := metaAt(file, at, size); ok && (!found || m.number > best.number) {
			best, found = m, true
		}
	}
	consider(0)
	if found {
		consider(int64(best.pageSize)) //nolint:gosec // at most maxPageSize
	} else {
		for at := int64(minPageSize); at <= maxPageSize; at *= 2 {
			consider(at)
		}
	}
	if !found {
		return meta{}, errors.New("it does not start like a file of this kind")
	}
	return best, nil
}

// metaAt reads a meta page of the database at an offset. It returns false if the page is not valid.
func metaAt(file io.ReaderAt, at, size int64) (meta, bool) {
	var b [headerSize + metaSize]byte
	if at+int64(len(b)) > size {
		return meta{}, false
	}
	if _, err := file.ReadAt(b[:], at); err != nil {
		return meta{}, false
	}
	body := b[headerSize:]
	sum := fnv.New64a()
	_, _ = sum.Write(body[:metaSize-8]) // never fails
	m := meta{
		pageSize: uint64(native.Uint32(body[8:])), root: native.Uint64(body[16:]),
		freelist: native.Uint64(body[32:]), pages: native.Uint64(body[40:]), number: native.Uint64(body[48:]),
	}
	ok := native.Uint32(body) == boltMagic && native.Uint32(body[4:]) == boltVersion && native.Uint64(body[56:]) == sum.Sum64() &&
		m.pageSize >= minPageSize && m.pageSize <= maxPageSize && m.pageSize&(m.pageSize-1) == 0 && (at == 0 || uint64(at) == m.pageSize) //nolint:gosec // not negative
	return m, ok
}

// page reads a page with its overflow pages. It fails if the page was already read.
func (w *walk) page(id uint64) (flags uint16, count int, data []byte, err error) {
	if id >= w.pages {
		return 0, 0, nil, fmt.Errorf("page %d is beyond its end", id)
	}
	var header [headerSize]byte
	if _, err := w.file.ReadAt(header[:], int64(id*w.pageSize)); err != nil { //nolint:gosec // below the file's size
		return 0, 0, nil, err
	}
	more := uint64(native.Uint32(header[12:]))
	if native.Uint64(header[:]) != id || more >= w.pages-id || more*w.pageSize > maxValue {
		return 0, 0, nil, fmt.Errorf("page %d is damaged", id)
	}
	for i := id; i <= id+more; i++ {
		if w.seen[i] {
			return 0, 0, nil, fmt.Errorf("page %d is used twice", i)
		}
		w.seen[i] = true
	}
	data = make([]byte, (more+1)*w.pageSize)
	if _, err := w.file.ReadAt(data, int64(id*w.pageSize)); err != nil { //nolint:gosec // below the file's size
		return 0, 0, nil, err
	}
	return native.Uint16(header[8:]), int(native.Uint16(header[10:])), data, nil
}

// limits bound the keys of a tree: at least from, and less than to. Empty ones do not bound. The library finds a key by
// the keys of the branches above it, so a key outside of them would be invisible.
type limits struct{ from, to []byte }

func (l limits) allow(key []byte) bool {
	return bytes.Compare(key, l.from) >= 0 && (l.to == nil || bytes.Compare(key, l.to) < 0)
}

// tree checks a tree of pages, which belongs to the named bucket. The top tree has no name and may contain only
// buckets: the library would refuse to write into a bucket that has a value in its place.
func (w *walk) tree(id uint64, depth int, bucket string, within limits) error {
	if depth > maxDepth {
		return errors.New("its pages nest too deep")
	}
	flags, count, data, err := w.page(id)
	if err != nil {
		return err
	}
	switch flags {
	case flagLeaf:
		return w.leaf(id, count, data, depth, bucket, within)
	case flagBranch:
		return w.branch(id, count, data, depth, bucket, within)
	}
	return fmt.Errorf("page %d is of no known kind", id)
}

// branch checks a branch page of a bucket and the pages below.
func (w *walk) branch(id uint64, count int, data []byte, depth int, bucket string, within limits) error {
	if count == 0 {
		return fmt.Errorf("page %d is damaged", id)
	}
	keys := make([][]byte, count)
	for i := range count {
		at := headerSize + i*branchItemSize
		if at+branchItemSize > len(data) {
			return fmt.Errorf("page %d is damaged", id)
		}
		key, ok := part(data, at, native.Uint32(data[at:]), native.Uint32(data[at+4:]))
		if !ok || len(key) == 0 || i > 0 && bytes.Compare(keys[i-1], key) >= 0 {
			return fmt.Errorf("page %d is damaged", id)
		}
		keys[i] = key
	}
	for i := range count {
		below := within
		if i > 0 { // the library looks for smaller keys below the first one, too
			below.from = keys[i]
		}
		if i+1 < count {
			below.to = keys[i+1]
		}
		child := native.Uint64(data[headerSize+i*branchItemSize+8:])
		if err := w.tree(child, depth+1, bucket, below); err != nil {
			return err
		}
	}
	return nil
}

// leaf checks a leaf page of a bucket, adds its records to the digest, and checks the buckets in it. The top tree,
// which has no name, contains buckets only.
func (w *walk) leaf(id uint64, count int, data []byte, depth int, bucket string, within limits) error {
	var last []byte
	for i := range count {
		at := headerSize + i*leafItemSize
		if at+leafItemSize > len(data) {
			return fmt.Errorf("page %d is damaged", id)
		}
		offset, keySize, valueSize := native.Uint32(data[at+4:]), native.Uint32(data[at+8:]), native.Uint32(data[at+12:])
		key, ok := part(data, at, offset, keySize)
		if !ok || keySize == 0 || i > 0 && bytes.Compare(last, key) >= 0 || !within.allow(key) {
			return fmt.Errorf("page %d is damaged", id)
		}
		last = key
		value, ok := part(data, at+int(keySize), offset, valueSize)
		if !ok {
			return fmt.Errorf("page %d is damaged", id)
		}
		if native.Uint32(data[at:])&leafBucket == 0 {
			if bucket == "" {
				return fmt.Errorf("page %d is damaged", id)
			}
			w.records.toggle(bucket, string(key), value)
			continue
		}
		if bucket != "" { // weir nests no buckets
			return fmt.Errorf("page %d is damaged", id)
		}
		if err := w.bucket(id, string(key), value, depth); err != nil {
			return err
		}
	}
	return nil
}

// bucket checks a bucket: its own pages, or the inline page of a small bucket.
func (w *walk) bucket(id uint64, name string, value []byte, depth int) error {
	if len(value) < bucketSize {
		return fmt.Errorf("page %d is damaged", id)
	}
	if root := native.Uint64(value); root != 0 {
		return w.tree(root, depth+1, name, limits{})
	}
	inline := value[bucketSize:]
	if depth > maxDepth || len(inline) < headerSize || native.Uint16(inline[8:]) != flagLeaf {
		return fmt.Errorf("page %d is damaged", id)
	}
	return w.leaf(id, int(native.Uint16(inline[10:])), inline, depth+1, name, limits{})
}

// part returns size bytes that start offset bytes after at.
func part(data []byte, at int, offset, size uint32) ([]byte, bool) {
	begin := uint64(at) + uint64(offset) //nolint:gosec // an index is not negative
	end := begin + uint64(size)
	if end > uint64(len(data)) {
		return nil, false
	}
	return data[begin:end], true
}

// freelist checks that no page listed as free is in use.
func (w *walk) freelist() error {
	if w.meta.freelist == noFreelist { // weir always writes it; without it, the library reads all pages on a goroutine of its own
		return errors.New("its list of free pages is missing")
	}
	flags, count, data, err := w.page(w.meta.freelist)
	if err != nil {
		return err
	}
	items := data[headerSize:]
	if count == 0xFFFF && len(items) >= 8 {
		// The number does not fit into the header, so the first item contains it.
		n := native.Uint64(items)
		items = items[8:]
		if n > uint64(len(items)/8) {
			return errors.New("its list of free pages is damaged")
		}
		count = int(n) //nolint:gosec // bounded by the page
	}
	if flags != flagFreelist || count > len(items)/8 {
		return errors.New("its list of free pages is damaged")
	}
	for i := range count {
		id := native.Uint64(items[i*8:])
		if id >= w.pages || w.seen[id] {
			return errors.New("its list of free pages is damaged")
		}
		w.seen[id] = true
	}
	return nil
}
