package state

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// Values do not change while they are decoded, even if another process writes to the file.
func TestValuesAreCopies(t *testing.T) {
	dir := t.TempDir()
	db := mustOpen(t, dir)
	fill(t, db, 20)
	path := filepath.Join(dir, File)
	erase := func() error {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteAt(make([]byte, info.Size()), 0)
		return errors.Join(err, f.Close())
	}
	read := 0
	_ = db.View(func(tx *Tx) error { // the file has no records afterwards
		return tx.table.scan(records.Name, "", false, func(key string, value []byte) error {
			read++
			got, err := tx.table.get(records.Name, key)
			if err != nil {
				return err
			}
			before := bytes.Clone(value)
			if err := erase(); err != nil {
				t.Fatal(err)
			}
			if len(before) == 0 || !bytes.Equal(value, before) || !bytes.Equal(got, before) {
				t.Errorf("a value was %q and is %q, and %q", before, value, got)
			}
			return ErrStop
		})
	})
	if read != 1 {
		t.Errorf("%d values were read", read)
	}
}
