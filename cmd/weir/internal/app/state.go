package app

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/weir-gitops/weir/cmd/weir/internal/atomicfile"
)

// State is a state directory that this process alone uses.
type State struct {
	Dir  string
	lock *os.File
}

// OpenState makes the directory if need be and locks it. The lock goes with the
// process, however that ends.
func OpenState(dir string) (*State, error) {
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
			return nil, fmt.Errorf("open state directory: %s is in use by another weir", dir)
		}
		return nil, fmt.Errorf("open state directory: lock %s: %w", f.Name(), err)
	}
	return &State{Dir: dir, lock: f}, nil
}

// Close gives the directory up. It unlocks by name, not by closing alone: a
// child that is just being started holds a copy of the descriptor until it
// runs its program, and with the copy the lock.
func (s *State) Close() error {
	return errors.Join(syscall.Flock(int(s.lock.Fd()), syscall.LOCK_UN), s.lock.Close())
}

// path is a place below the directory.
func (s *State) path(name string) string { return filepath.Join(s.Dir, name) }

const digestKeyBytes = 32

// DigestKey reads the key that stands for user data in plans' digests from the
// state directory dir, and makes it once if it is not there.
func DigestKey(dir string) ([]byte, error) {
	name := filepath.Join(dir, "digest.key")
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		key := make([]byte, digestKeyBytes)
		if _, err := rand.Read(key); err != nil {
			return nil, fmt.Errorf("make digest key: %w", err)
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("make digest key: %w", err)
		}
		if err := atomicfile.Write(name, []byte(base64.StdEncoding.EncodeToString(key)+"\n")); err != nil {
			return nil, fmt.Errorf("make digest key: %w", err)
		}
		return key, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read digest key: %w", err)
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(key) != digestKeyBytes {
		return nil, fmt.Errorf("read digest key: %s does not hold %d bytes in base64; remove it, and digests of earlier plans no longer match", name, digestKeyBytes)
	}
	return key, nil
}
