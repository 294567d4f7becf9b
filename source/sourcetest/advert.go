package sourcetest

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
)

// adverts caches git http-backend's lists of refs until a file of the repository changes. Daemons in tests
// poll many times per second, and git needs two processes for each list.
type adverts struct {
	root string
	git  http.Handler
	mu   sync.Mutex
	kept map[string]advert
}

// advert is a cached list, and the state of the repository at that time.
type advert struct {
	state  [sha256.Size]byte
	header http.Header
	body   []byte
}

// ServeHTTP answers from the cache if nothing has changed, and otherwise runs git.
func (a *adverts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	dir, isAdvert := strings.CutSuffix(r.URL.Path, "/info/refs")
	if !isAdvert || r.Method != http.MethodGet {
		a.git.ServeHTTP(w, r)
		return
	}
	key := r.URL.RequestURI() + " " + r.Header.Get("Git-Protocol")
	state, err := repositoryState(filepath.Join(a.root, filepath.FromSlash(path.Clean("/"+dir))))
	if err != nil {
		a.git.ServeHTTP(w, r)
		return
	}
	a.mu.Lock()
	kept, found := a.kept[key]
	a.mu.Unlock()
	code := http.StatusOK
	if !found || kept.state != state {
		answer := httptest.NewRecorder()
		a.git.ServeHTTP(answer, r)
		kept, code = advert{state: state, header: answer.Header(), body: answer.Body.Bytes()}, answer.Code
	}
	if code == http.StatusOK {
		a.mu.Lock()
		a.kept[key] = kept
		a.mu.Unlock()
	}
	maps.Copy(w.Header(), kept.header)
	w.WriteHeader(code)
	_, _ = w.Write(kept.body) // if this fails, the client has disconnected
}

// repositoryState returns a hash of the name, size and time of each file in a repository, and of the content
// of its refs. Refs can change twice within the resolution of file times.
func repositoryState(dir string) (state [sha256.Size]byte, err error) {
	h := sha256.New()
	err = filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(h, name, info.Size(), info.ModTime().UnixNano())
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		isRef := rel == "HEAD" || rel == "packed-refs" || strings.HasPrefix(rel, "refs"+string(filepath.Separator))
		if !isRef || e.IsDir() {
			return nil
		}
		content, err := os.ReadFile(name) //nolint:gosec // a file of a test's repository
		if err != nil {
			return err
		}
		_, err = h.Write(content)
		return err
	})
	return [sha256.Size]byte(h.Sum(nil)), err
}
