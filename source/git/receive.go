package git

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/weir-gitops/weir/source/fault"
)

// PackLimits are the limits of a received pack.
type PackLimits struct {
	// Bytes bounds the bytes that a fetch writes to disk. Objects bounds the number of its objects.
	Bytes   int64
	Objects uint32
	// Unpack is the time that this machine may need to read a small pack.
	Unpack time.Duration
	// ObjectBytes bounds the size of an object. deltaBytes bounds the objects that are in memory at the same
	// time to resolve deltas.
	ObjectBytes, deltaBytes int64
}

func DefaultPackLimits() PackLimits {
	return PackLimits{Bytes: 4 << 30, Objects: 3_000_000, Unpack: time.Minute, ObjectBytes: 512 << 20, deltaBytes: 96 << 20}
}

// TempPrefix is the prefix of the names of files that are being written.
const TempPrefix = "tmp_"

// Receive streams a pack into an objects directory and makes it visible. It installs the pack only if the
// complete pack arrived and could be indexed. An empty pack is no error, and installs nothing.
func (db *Store) Receive(ctx context.Context, objects string, max PackLimits, stream func(io.Writer) error) (err error) {
	packs := filepath.Join(objects, "pack")
	f, err := os.CreateTemp(packs, TempPrefix+"pack_")
	if err != nil {
		return fmt.Errorf("write pack: %w", err)
	}
	defer func() {
		_ = f.Close()           // already closed before the rename, or no longer needed
		_ = os.Remove(f.Name()) // already gone after the rename
	}()
	w := &cappedWriter{w: f, left: max.Bytes, limit: max.Bytes}
	if err := stream(w); err != nil {
		if w.err != nil {
			return fmt.Errorf("write pack: %w", w.err) // not an error of the server
		}
		return err
	}
	work, done := withUnpackTimeout(ctx, f, max.Bytes-w.left, max.Unpack)
	defer done()
	index, sum, err := indexPack(work, max)
	if err != nil || index == nil {
		return cmp.Or(work.over(), err)
	}
	base := filepath.Join(packs, "pack-"+sum.String())
	// A pack is used once both files exist, so the order does not matter to weir. Git requires the index
	// first.
	if err := writeIndex(base+".idx", index); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("write pack: %w", err)
	}
	if err := os.Rename(f.Name(), base+".pack"); err != nil {
		return fmt.Errorf("install pack: %w", err)
	}
	p, err := openPack(base)
	if err != nil {
		return err
	}
	db.add(p)
	return nil
}

func oversized(size int64, max PackLimits) error {
	return fault.New(fault.Unsupported, "the history has an object of %d bytes, more than the limit of %d; use a repository without it", size, max.ObjectBytes)
}

// unpackRate is the number of bytes of a pack per second in addition to PackLimits.Unpack. The time is
// limited because deltas of deltas can need unbounded work, even if they are small.
const unpackRate = 1 << 20

// packFile is a pack that must be read within a time limit.
type packFile struct {
	ctx context.Context
	f   *os.File
}

// withUnpackTimeout returns f with the time limit for reading a pack of the given size: limit, and more time for
// a large pack. The context's cause is then a fault that names the limit.
func withUnpackTimeout(ctx context.Context, f *os.File, size int64, limit time.Duration) (packFile, context.CancelFunc) {
	limit += time.Duration(size/unpackRate) * time.Second
	tooLong := fault.New(fault.Unsupported, "the pack of %d bytes takes more than %s to read: it unfolds too far", size, limit)
	work, cancel := context.WithTimeoutCause(ctx, limit, tooLong)
	return packFile{work, f}, cancel
}

// over returns the reason why reading must stop, or nil before the time limit.
func (p packFile) over() error {
	if p.ctx.Err() == nil {
		return nil
	}
	return context.Cause(p.ctx)
}

func (p packFile) Read(b []byte) (int, error) {
	if err := p.over(); err != nil {
		return 0, err
	}
	return p.f.Read(b)
}

func (p packFile) Seek(offset int64, whence int) (int64, error) {
	if err := p.over(); err != nil {
		return 0, err
	}
	return p.f.Seek(offset, whence)
}

func brokenPack(err error) error {
	return fault.New(fault.Unreachable, "the pack from the server is cut short or damaged: %s", fault.Plain(err.Error()))
}

// recoverPack converts a panic over hostile data to an error.
func recoverPack(err *error) {
	if r := recover(); r != nil {
		*err = brokenPack(fmt.Errorf("panic: %v", r))
	}
}

// headWriter keeps the first bytes of a delta, which contain two sizes.
type headWriter struct {
	buf [2 * binary.MaxVarintLen64]byte
	n   int
}

func (w *headWriter) Write(p []byte) (int, error) {
	w.n += copy(w.buf[w.n:], p)
	return len(p), nil
}

// targetSize returns the size of the delta's result. It is 0 if the delta is malformed, which the indexer
// refuses.
func (w *headWriter) targetSize() int64 {
	b := w.buf[:w.n]
	_, n := binary.Uvarint(b)
	if n <= 0 {
		return 0
	}
	size, n := binary.Uvarint(b[n:])
	if n < 0 || size > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(size)
}

// cappedWriter fails after left bytes were written.
type cappedWriter struct {
	w           io.Writer
	left, limit int64
	err         error
}

func (c *cappedWriter) Write(p []byte) (n int, err error) {
	if c.left -= int64(len(p)); c.left < 0 {
		c.err = fault.New(fault.Unsupported, "the pack is larger than %d bytes", c.limit)
		return 0, c.err
	}
	n, c.err = c.w.Write(p)
	return n, c.err
}
