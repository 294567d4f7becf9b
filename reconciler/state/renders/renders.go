// Package renders stores renders in files of the state directory, so that a restarted daemon repeats only
// renders whose inputs have changed. Each file is bound to its program, target and inputs by a code with a
// key of the instance. A file that is truncated, from another program, or forged is ignored. A failure here
// costs only time.
package renders

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
)

// Dir is a directory of renders. It is safe for concurrent use.
type Dir struct {
	path    string
	key     []byte
	log     *slog.Logger
	program func(context.Context) ([]byte, error)

	mu    sync.Mutex
	files map[string]bool // existing files; nil before they were listed
	// said says that a failure has been reported.
	said bool
}

// Open returns a directory at path. The first write creates it. key authenticates the files.
func Open(path string, key []byte, log *slog.Logger) *Dir {
	return &Dir{path: path, key: key, log: log, program: program}
}

// own is the hash of this program, when available. It is the same for the whole process.
var (
	hash = sync.OnceValues(hashed)
	own  atomic.Pointer[[]byte]
)

// program returns a hash of this program's file, because another program renders differently. The first call
// takes a tenth of a second, or more on a busy machine. A process that must end does not wait for it.
func program(ctx context.Context) ([]byte, error) {
	if sum := own.Load(); sum != nil {
		return *sum, nil
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if sum, err := hash(); err == nil {
			own.Store(&sum)
		}
	}()
	select {
	case <-done:
		return hash()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// hashed returns the hash of the running program, so that renders of another version are not used.
func hashed() ([]byte, error) {
	name := "/proc/self/exe" // correct even if the file was replaced
	if _, err := os.Stat(name); runtime.GOOS != "linux" || err != nil {
		if name, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.CopyBuffer(struct{ io.Writer }{h}, struct{ io.Reader }{f}, make([]byte, 256<<10)); err != nil {
		return nil, err
	}
	return h.Sum(nil), nil
}

const begin = "weir render 1\n"

// most is the maximum size of a render.
const most = 64 << 20

// Get returns the text that was put for a target and key, or nil.
func (d *Dir) Get(ctx context.Context, target string, key [sha256.Size]byte) []byte {
	// Opening a named pipe would otherwise wait for a writer.
	f, err := os.OpenFile(d.file(target), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil // most likely the file does not exist
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil // weir writes only regular files, so the next render replaces it
	}
	all, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		d.failed(err)
		return nil
	}
	rest, ours := bytes.CutPrefix(all, []byte(begin))
	if !ours || len(rest) < sha256.Size {
		return nil
	}
	code, err := d.code(ctx, target, key, rest[sha256.Size:])
	if err != nil || !hmac.Equal(code, rest[:sha256.Size]) {
		return nil
	}
	return rest[sha256.Size:]
}

// Put stores a text for a target and key, and replaces the earlier one. A nil text removes it.
func (d *Dir) Put(ctx context.Context, target string, key [sha256.Size]byte, text []byte) {
	if err := d.put(ctx, target, key, text); err != nil && ctx.Err() == nil {
		d.failed(err)
	}
}

// put stores the render of a target in a file, and replaces the earlier one. A nil or very large text removes
// the file.
func (d *Dir) put(ctx context.Context, target string, key [sha256.Size]byte, text []byte) error {
	name := d.file(target)
	if text == nil || len(text) > most/2 {
		if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	code, err := d.code(ctx, target, key, text)
	if err != nil {
		return err
	}
	d.mu.Lock()
	err = d.list()
	d.mu.Unlock()
	if err != nil {
		return err
	}
	// The file is not synced to disk: a file that a crash truncates has no valid code.
	f, err := os.CreateTemp(d.path, ".render-*")
	if err != nil {
		return err
	}
	_, err = f.Write(bytes.Join([][]byte{[]byte(begin), code, text}, nil))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.files[filepath.Base(name)] = true
	return nil
}

// Only removes the files of all other targets.
func (d *Dir) Only(targets []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.list(); err != nil {
		d.fail(err)
		return
	}
	if len(d.files) <= len(targets) {
		return // at most as many are in excess as have no render that may be kept
	}
	wanted := map[string]bool{}
	for _, t := range targets {
		wanted[filepath.Base(d.file(t))] = true
	}
	for name := range d.files {
		if !wanted[name] {
			if err := os.Remove(filepath.Join(d.path, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				d.fail(err)
			}
			delete(d.files, name)
		}
	}
}

// list lists the existing files once. The caller holds mu.
func (d *Dir) list() error {
	if d.files != nil {
		return nil
	}
	if err := os.MkdirAll(d.path, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return err
	}
	d.files = map[string]bool{}
	for _, e := range entries {
		d.files[e.Name()] = true // including partial files that a crash left
	}
	return nil
}

func (d *Dir) file(target string) string {
	sum := sha256.Sum256([]byte(target))
	return filepath.Join(d.path, hex.EncodeToString(sum[:16]))
}

// code returns the code that authenticates a text.
func (d *Dir) code(ctx context.Context, target string, key [sha256.Size]byte, text []byte) ([]byte, error) {
	program, err := d.program(ctx)
	if err != nil {
		return nil, err
	}
	name := sha256.Sum256([]byte(target))
	h := hmac.New(sha256.New, d.key)
	for _, part := range [][]byte{[]byte(begin), program, name[:], key[:], text} {
		h.Write(part)
	}
	return h.Sum(nil), nil
}

// failed reports a failure to store renders once.
func (d *Dir) failed(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail(err)
}

func (d *Dir) fail(err error) {
	if !d.said {
		d.said = true
		d.log.Warn("cannot store all renders: the next start renders again and takes longer", "error", err)
	}
}
