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

// Dir is a state directory that this process alone uses.
type Dir struct {
	Name string
	lock *os.File
}

// Open makes the directory if need be and locks it. The lock ends with the process, also after
// a crash.
func Open(dir string) (*Dir, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open state directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open state directory: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close() // the lock is what failed
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("open state directory %s: %w", dir, state.ErrInUse)
		}
		return nil, fmt.Errorf("open state directory: lock %s: %w", f.Name(), err)
	}
	return &Dir{Name: dir, lock: f}, nil
}

// Close gives the directory up. It unlocks by name, not by closing alone: a
// child that is just being started holds a copy of the descriptor until it
// runs its program, and with the copy the lock.
func (d *Dir) Close() error {
	return errors.Join(syscall.Flock(int(d.lock.Fd()), syscall.LOCK_UN), d.lock.Close())
}

// Path is a place below the directory.
func (d *Dir) Path(name string) string { return filepath.Join(d.Name, name) }

// DigestKey reads the key that stands for user data in plans' digests from the
// state directory dir, and makes it once if it is not there.
func DigestKey(dir string) ([]byte, error) {
	return files.OpenKey(filepath.Join(dir, "digest.key"), "digest key", "digests of earlier plans no longer match")
}
