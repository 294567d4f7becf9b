// Package files keeps small files of weir's own: each is either the old or the new
// one, whenever the process or the machine stops, and its owner alone may read it. A
// random key is such a file that is made once, and read ever after.
package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Write puts data into the file name, readable by its owner only. The directory
// must exist.
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
