package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu"
)

// faultFile injects the faults in a file. It reads the file again at each request, so that a change applies
// from the next call on. Without the file, it injects no faults.
type faultFile struct {
	name   string
	faults *awsemu.Faults
	next   http.Handler
	logger *slog.Logger

	mu   sync.Mutex
	at   time.Time // modification time of the active file, zero for none
	size int64
}

func (f *faultFile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := f.read(); err != nil {
		f.logger.Error("cannot read the faults; the previous ones stay in use", "error", err)
	}
	f.next.ServeHTTP(w, r)
}

// read reads the file if it has changed. It reports an invalid file once.
func (f *faultFile) read() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := os.Stat(f.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if !f.at.IsZero() {
			f.at, f.size = time.Time{}, 0
			return f.faults.Replace(strings.NewReader("{}"))
		}
		return nil
	case err != nil:
		return err
	case info.ModTime().Equal(f.at) && info.Size() == f.size:
		return nil
	}
	f.at, f.size = info.ModTime(), info.Size()
	if err := readFile(f.name, f.faults.Replace); err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	return nil
}
