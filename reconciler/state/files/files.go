// Package files writes small files atomically: after a crash of the process or the machine, a file has the
// old or the new content. Only the owner may read them. A random key is such a file. It is made once and
// then only read.
package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Write writes data to the file name, readable only by its owner. The directory must exist.
func Write(name string, data []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".tmp-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("write %s: %w", name, err), os.Remove(f.Name()))
		}
	}()
	if _, err := f.Write(data); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Sync(); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}
