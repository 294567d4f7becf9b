package source_test

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/sourcetest"
	"github.com/weir-gitops/weir/source/transport"
)

// TestTreeThatMultiplies makes a few objects stand for a million files.
func TestTreeThatMultiplies(t *testing.T) {
	t.Parallel()
	repo := sourcetest.New(t)
	repo.Write(map[string]string{"a/x": "1"})
	name := repo.Git("rev-parse", repo.Commit("one")+":a")
	list := filepath.Join(t.TempDir(), "list")
	for range 6 {
		var level strings.Builder
		for _, c := range "0123456789" {
			level.WriteString("40000 " + string(c) + "\x00" + unhex(t, name))
		}
		if err := os.WriteFile(list, []byte(level.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		name = repo.Git("hash-object", "-t", "tree", "-w", list)
	}
	repo.Branch("main", repo.Git("commit-tree", "-m", "bomb", name))
	for _, url := range []string{repo.URL(), repo.Dir()} {
		wantUnavailable(t, open(t, source.Config{URL: url}, source.Options{}), fault.Unsupported)
	}
}

// TestHugeCommits gives commits a message and parents that nobody would write.
func TestHugeCommits(t *testing.T) {
	t.Parallel()
	repo := newFork(t)
	g := open(t, source.Config{URL: repo.URL()}, source.Options{})
	wantRevision(t, g, repo.base)
	commit := func(parents, message string) string {
		text := "tree " + repo.Git("rev-parse", repo.base+"^{tree}") + "\n" + parents + "author A <a@x> 1767225600 +0000\ncommitter A <a@x> 1767225600 +0000\n\n" + message
		return repo.GitInput([]byte(text), "hash-object", "--literally", "-t", "commit", "-w", "--stdin")
	}
	parent := "parent " + repo.base + "\n"
	for name, huge := range map[string]string{
		"message": commit(parent, strings.Repeat("x", 2<<20)),
		"parents": commit(strings.Repeat(parent, 2<<20/len(parent)), "x"),
	} {
		for _, head := range []string{huge, commit("parent "+huge+"\n", "behind it")} {
			repo.Git("update-ref", "refs/pull/1/head", head)
			wantPullFails(t, g, source.PullRef{Head: "refs/pull/1/head", HeadSHA: head, Base: repo.base}, fault.Unsupported, "and a commit or tag at most 1048576")
		}
		repo.Branch("main", huge)
		if ue := wantUnavailable(t, g, fault.Unsupported); !strings.Contains(ue.Error(), huge) {
			t.Errorf("%s: %v", name, ue)
		}
	}
	repo.Branch("main", commit(parent, strings.Repeat("é", 200_000)+"\n\nWeir: x\n"))
	if s := latest(t, g); len([]rune(s.Subject)) != 301 || !strings.HasSuffix(s.Message, "\n\nWeir: x\n") {
		t.Errorf("the subject has %d characters", len([]rune(s.Subject)))
	}
}

func unhex(t *testing.T, s string) string {
	t.Helper()
	out := make([]byte, len(s)/2)
	for i := range out {
		for _, c := range s[2*i : 2*i+2] {
			out[i] = out[i]<<4 | byte(strings.IndexRune("0123456789abcdef", c))
		}
	}
	return string(out)
}

func TestDeepTree(t *testing.T) {
	t.Parallel()
	repo := sourcetest.New(t)
	repo.Write(map[string]string{strings.Repeat("d/", 100) + "f": "1"})
	one := repo.Commit("one")
	g := open(t, source.Config{URL: repo.URL()}, source.Options{})
	wantRevision(t, g, one)
	repo.Write(map[string]string{strings.Repeat("d/", 200) + "f": "1"})
	repo.Commit("two")
	wantUnavailable(t, g, fault.Unsupported)
}

// TestTreesThatGitWouldNotMake writes names into tree objects that leave their
// directory when taken for paths.
func TestTreesThatGitWouldNotMake(t *testing.T) {
	t.Parallel()
	repo := sourcetest.New(t)
	repo.Write(map[string]string{"f": "1"})
	blob := unhex(t, repo.Git("rev-parse", repo.Commit("one")+":f"))
	list := filepath.Join(t.TempDir(), "list")
	for _, entry := range []string{"100644 ..", "100644 a/../../b", "100644 ", "100666 f", "100644 f\x00" + blob + "100644 f"} {
		if err := os.WriteFile(list, []byte(entry+"\x00"+blob), 0o600); err != nil {
			t.Fatal(err)
		}
		bad := repo.Git("hash-object", "--literally", "-t", "tree", "-w", list)
		repo.Branch("main", repo.Git("commit-tree", "-m", "bad", bad))
		wantUnavailable(t, open(t, source.Config{URL: repo.Dir()}, source.Options{}), fault.Corrupt)
	}
}

func TestCertificateAuthority(t *testing.T) {
	t.Parallel()
	repo, one := oneCommit(t)
	server := httptest.NewUnstartedServer(repo.Server)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // A refused certificate is wanted here.
	server.StartTLS()
	defer server.Close()
	url := server.URL + "/" + filepath.Base(repo.Dir())

	if ue := wantUnavailable(t, open(t, source.Config{URL: url}, source.Options{}), fault.Unreachable); !strings.Contains(ue.Error(), "caFile") {
		t.Errorf("the error does not say what to do: %v", ue)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	wantRevision(t, open(t, source.Config{URL: url, Settings: transport.Settings{CAFile: file}}, source.Options{}), one)
}

func TestProxy(t *testing.T) {
	t.Parallel()
	repo, one := oneCommit(t)
	var passed atomic.Int32
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { passed.Add(1) }}
	proxy := httptest.NewServer(forward)
	defer proxy.Close()
	wantRevision(t, open(t, source.Config{URL: repo.URL(), Settings: transport.Settings{Proxy: proxy.URL}}, source.Options{}), one)
	if passed.Load() != 2 {
		t.Errorf("%d requests went through the proxy, want 2", passed.Load())
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections() // The proxy's own.
}
