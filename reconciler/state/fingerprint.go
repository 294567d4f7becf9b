package state

import (
	"encoding/binary"
	"hash/maphash"
	"os"
	"time"
)

// fingerprint identifies the content of a file: its last transaction, with the layout of the pages that the library
// remembers, and a digest of its records.
type fingerprint struct {
	meta
	records digest
}

// digest is the XOR of a hash of each record. So a transaction updates it without reading the records that it does
// not change.
type digest uint64

// digestSeed is chosen at the start of the process. So a digest means nothing to another process.
var digestSeed = maphash.MakeSeed()

// toggle adds a record to the digest. The second call with the same record removes it.
func (d *digest) toggle(bucket, key string, value []byte) {
	var h maphash.Hash
	h.SetSeed(digestSeed)
	for _, part := range []string{bucket, key} {
		_ = binary.Write(&h, binary.NativeEndian, uint64(len(part))) // never fails
		_, _ = h.WriteString(part)
	}
	_, _ = h.Write(value)
	*d ^= digest(h.Sum64())
}

// stamp contains the size and the times of a file. A write changes it, except if the size stays the same and an earlier
// write happened in the same tick of the file system's clock (a few milliseconds).
type stamp struct {
	size              int64
	modified, changed time.Time
}

func stampOf(info os.FileInfo) stamp { return stamp{info.Size(), info.ModTime(), changeTime(info)} }

// image describes a file as weir left it after its last transaction.
type image struct {
	stamp
	fingerprint
	// also is set after a failed commit, which may have reached the file: its transaction number and its records.
	also *fingerprint
}

// imageOf checks a file and returns its image.
func imageOf(file *os.File) (image, error) {
	info, err := file.Stat() // first, so that a write during the check is noticed later
	if err != nil {
		return image{}, err
	}
	found, err := check(file, info.Size())
	return image{stamp: stampOf(info), fingerprint: found}, err
}

// after returns the image of a file after a transaction. If the file cannot be read or does not show the transaction, the
// image allows the records before it and after it.
func (i image) after(file *os.File, transaction int, records digest) image {
	either := i.unsure(transaction, records)
	info, err := file.Stat()
	if err != nil {
		return either
	}
	m, err := newestMeta(file, info.Size())
	if err != nil || m.number != either.also.number {
		return either
	}
	return image{stamp: stampOf(info), fingerprint: fingerprint{m, records}}
}

// unsure returns an image for the case that it is unknown whether a transaction reached the file. It allows the records
// before it and after it.
func (i image) unsure(transaction int, records digest) image {
	i.also = &fingerprint{meta{number: uint64(transaction)}, records} //nolint:gosec // transactions are counted from 0
	return i
}

// allows reports whether weir can have left this content in the file.
func (i image) allows(found fingerprint) bool {
	return found == i.fingerprint || i.also != nil && found.number == i.also.number && found.records == i.also.records
}

// untouched reports whether no other process wrote to the file since its image was taken. It reads the file's
// times and its last transaction only.
func (i image) untouched(file *os.File, info os.FileInfo) bool {
	if i.also != nil || i.stamp != stampOf(info) {
		return false
	}
	m, err := newestMeta(file, info.Size())
	return err == nil && m == i.meta
}
