// Package statedir locks the state directory of a process, and reads the keys in it.
package statedir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/reconciler/state/files"
)

// Dir is a state directory that only this process uses.
type Dir struct {
	Name string
	lock *os.File
}

// Open creates the directory if necessary and locks it. The lock ends with the process, also after a crash.
func Open(dir string) (*Dir, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open state directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open state directory: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close() // the error is about the lock
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("open state directory %s: %w", dir, state.ErrInUse)
		}
		return nil, fmt.Errorf("open state directory: lock %s: %w", f.Name(), err)
	}
	return &Dir{Name: dir, lock: f}, nil
}

// Close releases the directory. It unlocks explicitly, because closing is not sufficient: a child process
// that is being started has a copy of the descriptor, and so of the lock, until it runs its program.
func (d *Dir) Close() error {
	return errors.Join(syscall.Flock(int(d.lock.Fd()), syscall.LOCK_UN), d.lock.Close())
}

// Path returns a path below the directory.
func (d *Dir) Path(name string) string { return filepath.Join(d.Name, name) }

// DigestKey reads the key for hashes of user data in digests of plans from the state directory dir. It
// creates the key if it is missing.
func DigestKey(dir string) ([]byte, error) {
	return files.OpenKey(filepath.Join(dir, "digest.key"), "digest key", "digests of earlier plans no longer match")
}
