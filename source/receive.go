package source

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// receive streams a pack from the server into the mirror and makes it visible.
// Nothing is installed unless the whole pack arrived and can be indexed.
func (m *mirror) receive(ctx context.Context, stream func(io.Writer) error) error {
	return m.receiveWithin(ctx, m.limits, stream)
}

func (m *mirror) receiveWithin(ctx context.Context, max limits, stream func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(m.packDir(), tmpPrefix+"pack_")
	if err != nil {
		return fmt.Errorf("write pack: %w", err)
	}
	defer func() {
		_ = f.Close()           // Written through before the rename, or given up.
		_ = os.Remove(f.Name()) // Gone if it was renamed.
	}()
	w := &cappedWriter{w: f, left: max.packBytes, limit: max.packBytes}
	if err := stream(w); err != nil {
		if w.err != nil {
			return fmt.Errorf("write pack: %w", w.err) // Not the server's fault.
		}
		return err
	}
	defer patienceOf(ctx).rest()()
	work, done := withinReason(ctx, f, max.packBytes-w.left, max.unpack)
	defer done()
	count, err := inspectPack(work, max)
	if err != nil || count == 0 {
		return cmp.Or(work.over(), err)
	}
	index, sum, err := indexPack(work)
	if err != nil {
		return cmp.Or(work.over(), err)
	}
	base := filepath.Join(m.packDir(), "pack-"+sum.String())
	var idx bytes.Buffer
	if _, err := idxfile.NewEncoder(&idx).Encode(index); err != nil {
		return fmt.Errorf("encode pack index: %w", err)
	}
	// A pack counts once both files are there, so the order does not matter to
	// readers; the index first keeps readers of Git's own rule right as well.
	if err := writeAtomic(base+".idx", idx.Bytes()); err != nil {
		return fmt.Errorf("write pack index: %w", err)
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
	m.db.add(p)
	return nil
}

// indexPack reads the pack once more, checks its checksum and resolves deltas.
func indexPack(f io.ReadSeeker) (index *idxfile.MemoryIndex, sum plumbing.Hash, err error) {
	defer recoverPack(&err)
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, sum, fmt.Errorf("index pack: %w", err)
	}
	w := &idxfile.Writer{}
	p, err := packfile.NewParser(packfile.NewScanner(f), w)
	if err != nil {
		return nil, sum, brokenPack(err)
	}
	if sum, err = p.Parse(); err != nil {
		return nil, sum, brokenPack(err)
	}
	if index, err = w.Index(); err != nil {
		return nil, sum, brokenPack(err)
	}
	return index, sum, nil
}

// reservedType is an object type that means nothing yet.
const reservedType plumbing.ObjectType = 5

// inspectPack reads the pack through without keeping anything and refuses what
// would not fit into memory while indexing: a small pack can inflate to any size.
func inspectPack(f io.ReadSeeker, max limits) (objects uint32, err error) {
	defer recoverPack(&err)
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return 0, fmt.Errorf("read pack: %w", err)
	}
	s := packfile.NewScanner(f)
	_, count, err := s.Header()
	switch {
	case errors.Is(err, packfile.ErrEmptyPackfile):
		return 0, faultf(Unreachable, "the server sent no pack")
	case err != nil:
		return 0, brokenPack(err)
	case count > max.packObjects:
		return 0, faultf(Unsupported, "the pack has %d objects, more than the limit of %d", count, max.packObjects)
	}
	for range count {
		h, err := s.NextObjectHeader()
		if err != nil {
			return 0, brokenPack(err)
		}
		head := &headWriter{}
		if h.Length > max.objectBytes {
			return 0, oversized(h.Length, max)
		}
		n, _, err := s.NextObject(head)
		switch {
		case err != nil:
			return 0, brokenPack(err)
		case n != h.Length, !h.Type.Valid(), h.Type == reservedType:
			return 0, brokenPack(fmt.Errorf("an object of type %d has %d bytes and says %d", h.Type, n, h.Length))
		}
		if h.Type.IsDelta() {
			if size := head.targetSize(); size > max.objectBytes {
				return 0, oversized(size, max)
			}
		}
	}
	return count, nil
}

func oversized(size int64, max limits) error {
	return faultf(Unsupported, "the history holds an object of %d bytes, more than the limit of %d; use a repository without it", size, max.objectBytes)
}

// unpackRate is the bytes of a pack that a second more is for than limits.unpack.
// Deltas upon deltas are work without a bound, however small they are.
const unpackRate = 1 << 20

// packFile is a pack that is read within a time.
type packFile struct {
	ctx context.Context
	f   *os.File
}

func withinReason(ctx context.Context, f *os.File, size int64, limit time.Duration) (packFile, context.CancelFunc) {
	limit += time.Duration(size/unpackRate) * time.Second
	tooLong := faultf(Unsupported, "the pack of %d bytes takes more than %s to read: it unfolds too far", size, limit)
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
	return faultf(Unreachable, "the pack from the server is cut short or damaged: %s", plain(err.Error()))
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
		c.err = faultf(Unsupported, "the pack is larger than %d bytes", c.limit)
		return 0, c.err
	}
	n, c.err = c.w.Write(p)
	return n, c.err
}
