package state

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/state/files"
)

// markerFile exists in the directory of File from the first start on. If the marker exists without File, the
// requests of people were lost. To start again on purpose, empty the whole directory.
const markerFile = "weir.db.begun"

const markerText = "weir keeps suspensions and approvals in " + File + ". Where that is gone and this file is not, weir holds all\n" +
	"writes until somebody says: weir resume --all --after-loss\n"

var errGone = errors.New("it is gone, though an earlier weir had one here")

// Loss says that suspensions and approvals were lost. It stays in the new file until a person accepts it.
type Loss struct {
	Since time.Time `json:"since,omitzero"`
	// Why names files without their directory, because not only the owner reads it.
	Why string `json:"why"`
}

const lossKey = "lost"

var losses = Bucket[Loss]{aboutBucket}

// LossOf returns the loss that is not accepted yet, or nil.
func LossOf(tx *Tx) (*Loss, error) {
	l, ok, err := losses.Get(tx, lossKey)
	if err != nil || !ok {
		return elsewhere(tx), err
	}
	return &l, nil
}

// Lose records a loss, unless one is recorded already.
func Lose(s Store, why string) error {
	return s.Update(func(tx *Tx) error {
		if _, ok, err := losses.Get(tx, lossKey); err != nil || ok {
			return err
		}
		return losses.Put(tx, lossKey, Loss{time.Now(), why})
	})
}

// engines has the id of the engine in which the records are written. If they appear in another engine, it
// was copied or restored from a backup, and later requests are missing. It is then unknown whether an
// approval was used, or what was suspended.
var engines = Bucket[string]{aboutBucket}

const engineKey = "engine"

// elsewhere returns a loss if the records belong to another engine, or were wiped since this process read
// them.
func elsewhere(tx *Tx) *Loss {
	id := engineOf(tx)
	if id == "" {
		return nil
	}
	was, known, err := engines.Get(tx, engineKey)
	switch {
	case err != nil:
		return &Loss{Why: err.Error()}
	case !known:
		return &Loss{Why: "the coordination engine has no records any more"}
	case was != id:
		return &Loss{Why: fmt.Sprintf("the coordination engine, %s, has the records of another one, %s: it was restored from a backup, or copied", id, was)}
	}
	return nil
}

// engineOf returns the id of the engine that has the records. It is empty for a file.
func engineOf(tx *Tx) string {
	if t, is := tx.table.(*sharedTx); is {
		return t.replica.EngineID()
	}
	return ""
}

// adopt assigns the records to the engine that has them.
func adopt(tx *Tx) error {
	err := Bucket[int]{aboutBucket}.Put(tx, formatKey, format)
	if id := engineOf(tx); id != "" {
		err = errors.Join(err, engines.Put(tx, engineKey, id))
	}
	return err
}

// AcceptLoss removes the loss.
func AcceptLoss(tx *Tx) error {
	return errors.Join(losses.Delete(tx, lossKey), fresh.Delete(tx, freshKey), adopt(tx))
}

// A store that several members share is empty at first, and also if an engine lost its data. So a new store
// permits nothing in a scope until AWS has shown that it has no resources of this instance there, or a
// person confirms it.
var (
	fresh       = Bucket[time.Time]{aboutBucket}
	begunScopes = Bucket[time.Time]{"begun"}
)

const freshKey = "new"

// CheckLoss runs before the first write in a scope. holds reports whether AWS has resources of this
// instance there. If it has, and a new store has no record of the scope, records were lost:
// CheckLoss records the loss and returns a LossError.
func CheckLoss(s Store, scope string, holds bool) error {
	settled := false
	err := s.View(func(tx *Tx) error {
		_, isNew, err := fresh.Get(tx, freshKey)
		if err != nil || !isNew {
			settled = err == nil
			return err
		}
		_, settled, err = begunScopes.Get(tx, scope)
		return err
	})
	if err != nil || settled {
		return err
	}
	var lost *Loss
	err = s.Update(func(tx *Tx) error {
		lost = nil
		since, isNew, err := fresh.Get(tx, freshKey)
		if err != nil || !isNew {
			return err
		}
		if _, known, err := begunScopes.Get(tx, scope); err != nil || known {
			return err
		}
		if !holds {
			return begunScopes.Put(tx, scope, time.Now())
		}
		if lost, err = LossOf(tx); err != nil || lost != nil {
			return err
		}
		lost = &Loss{Since: since, Why: "the coordination engine had no records, although AWS has resources of this instance in " + scope}
		return losses.Put(tx, lossKey, *lost)
	})
	if err == nil && lost != nil {
		err = &LossError{lost}
	}
	return err
}

// LossError says that records were lost.
type LossError struct{ Loss *Loss }

// Error returns the reason.
func (e *LossError) Error() string { return "suspensions and approvals may be lost: " + e.Loss.Why }

// noteFile has the reason of a loss that was found while the file was in use, until a new file has it.
const noteFile = "weir.db.lost"

// noteLoss writes the note.
func noteLoss(dir string, why error) error {
	return files.Write(filepath.Join(dir, noteFile), []byte(why.Error()+"\n"))
}

// notedLoss returns the reason in the note, empty without a note.
func notedLoss(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, noteFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return cmp.Or(strings.TrimSpace(string(text)), "an earlier start found it damaged"), err
}

// forgetNote removes the note once the new file is certain to be found after a crash of the machine.
func forgetNote(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("replace state: %w", err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("replace state: %w", err)
	}
	if err := os.Remove(filepath.Join(dir, noteFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("replace state: %w", err)
	}
	return nil
}

// begun reports whether an earlier process created a file in the directory.
func begun(dir string) (bool, error) {
	_, err := os.Lstat(filepath.Join(dir, markerFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// markBegun writes the marker, after the file exists.
func markBegun(dir string) error {
	if is, err := begun(dir); err != nil || is {
		return err
	}
	return files.Write(filepath.Join(dir, markerFile), []byte(markerText))
}
