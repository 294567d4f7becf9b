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

// PackLimits bound what a pack may take.
type PackLimits struct {
	// Bytes bounds what one fetch writes to disk, objects how many it brings.
	Bytes   int64
	Objects uint32
	// Unpack is the time that reading a small pack may take on this machine.
	Unpack time.Duration
	// ObjectBytes bounds one object, deltaBytes the objects that have to be in memory at a time to
	// resolve deltas.
	ObjectBytes, deltaBytes int64
}

func DefaultPackLimits() PackLimits {
	return PackLimits{Bytes: 4 << 30, Objects: 3_000_000, Unpack: time.Minute, ObjectBytes: 512 << 20, deltaBytes: 96 << 20}
}

// TempPrefix begins the names of files that are being written.
const TempPrefix = "tmp_"

// Receive streams a pack into an objects directory and makes it visible. Nothing is
// installed unless the whole pack arrived and can be indexed.
func (db *Store) Receive(ctx context.Context, objects string, max PackLimits, stream func(io.Writer) error) (err error) {
	packs := filepath.Join(objects, "pack")
	f, err := os.CreateTemp(packs, TempPrefix+"pack_")
	if err != nil {
		return fmt.Errorf("write pack: %w", err)
	}
	defer func() {
		_ = f.Close()           // Written through before the rename, or given up.
		_ = os.Remove(f.Name()) // Gone if it was renamed.
	}()
	w := &cappedWriter{w: f, left: max.Bytes, limit: max.Bytes}
	if err := stream(w); err != nil {
		if w.err != nil {
			return fmt.Errorf("write pack: %w", w.err) // Not the server's fault.
		}
		return err
	}
	work, done := withinReason(ctx, f, max.Bytes-w.left, max.Unpack)
	defer done()
	index, sum, err := indexPack(work, max)
	if err != nil || index == nil {
		return cmp.Or(work.over(), err)
	}
	base := filepath.Join(packs, "pack-"+sum.String())
	// A pack is in use once both files are there, so the order does not matter to
	// readers; the index first keeps readers of Git's own rule right as well.
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

// unpackRate is the bytes of a pack that a second more is for than packLimits.unpack.
// Deltas upon deltas are work without a bound, however small they are.
const unpackRate = 1 << 20

// packFile is a pack that is read within a time.
type packFile struct {
	ctx context.Context
	f   *os.File
}

func withinReason(ctx context.Context, f *os.File, size int64, limit time.Duration) (packFile, context.CancelFunc) {
	limit += time.Duration(size/unpackRate) * time.Second
	tooLong := fault.New(fault.Unsupported, "the pack of %d bytes takes more than %s to read: it unfolds too far", size, limit)
	work, cancel := context.WithTimeoutCause(ctx, limit, tooLong)
	return packFile{work, f}, cancel
}

// over says why no more is read; nil while the time lasts.
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

// recoverPack turns a panic over hostile bytes into an error.
func recoverPack(err *error) {
	if r := recover(); r != nil {
		*err = brokenPack(fmt.Errorf("panic: %v", r))
	}
}

// headWriter keeps the first bytes of a delta, which hold two sizes.
type headWriter struct {
	buf [2 * binary.MaxVarintLen64]byte
	n   int
}

func (w *headWriter) Write(p []byte) (int, error) {
	w.n += copy(w.buf[w.n:], p)
	return len(p), nil
}

// targetSize is the size that the delta will produce; 0 if it is malformed,
// which the indexer refuses.
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

// cappedWriter fails once more than left bytes were written.
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
