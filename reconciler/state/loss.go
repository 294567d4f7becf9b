package state

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/weir-gitops/weir/reconciler/state/files"
)

// MarkerFile stands beside File from the first start on: a directory with it and
// without the other has lost the requests of people. To begin anew on purpose, the
// whole directory is emptied.
const MarkerFile = "weir.db.begun"

const markerText = "weir keeps suspensions and approvals in " + File + ". Where that is gone and this file is not, weir holds all\n" +
	"writes until somebody says: weir reconcile --accept-lost-state\n"

var errGone = errors.New("it is gone, though an earlier weir had one here")

// Loss says that suspensions and approvals were lost, and stays in the file that
// replaced the lost one until a person accepts it.
type Loss struct {
	Since time.Time `json:"since,omitzero"`
	// Why names files without their directory: others than its owner read it.
	Why string `json:"why"`
}

const lossKey = "lost"

var losses = Bucket[Loss]{aboutBucket}

// LossOf returns what was lost and not accepted yet, nil for nothing.
func LossOf(tx *Tx) (*Loss, error) {
	l, ok, err := losses.Get(tx, lossKey)
	if err != nil || !ok {
		return nil, err
	}
	return &l, nil
}

// AcceptLoss forgets that something was lost.
func AcceptLoss(tx *Tx) error { return losses.Delete(tx, lossKey) }

// begun reports whether an earlier weir made a file in the directory.
func begun(dir string) (bool, error) {
	_, err := os.Lstat(filepath.Join(dir, MarkerFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// markBegun writes the marker, once there is a file.
func markBegun(dir string) error {
	if is, err := begun(dir); err != nil || is {
		return err
	}
	return files.Write(filepath.Join(dir, MarkerFile), []byte(markerText))
}
