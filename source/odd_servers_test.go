package source_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/sourcetest"
)

// lacking serves a repository whose server says less of what it can do.
func lacking(t *testing.T, repo *sourcetest.Repo, without ...string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			repo.ServeHTTP(w, r)
			return
		}
		rec := httptest.NewRecorder()
		repo.ServeHTTP(rec, r)
		head, rest, _ := bytes.Cut(rec.Body.Bytes(), []byte("0000"))
		length, tail := rest[:4], rest[4:]
		var n int
		for _, c := range length {
			n = n<<4 | strings.IndexByte("0123456789abcdef", c)
		}
		line, more := string(tail[:n-4]), tail[n-4:]
		ref, caps, _ := strings.Cut(line, "\x00")
		var kept []string
		for _, c := range strings.Fields(caps) {
			drop := false
			for _, prefix := range without {
				drop = drop || strings.HasPrefix(c, prefix)
			}
			if !drop {
				kept = append(kept, c)
			}
		}
		for k, v := range rec.Header() {
			if k != "Content-Length" {
				w.Header()[k] = v
			}
		}
		_, _ = w.Write(append(append(head, "0000"+pkt(ref+"\x00"+strings.Join(kept, " ")+"\n")...), more...))
	}))
	t.Cleanup(server.Close)
	return server.URL + "/" + filepath.Base(repo.Dir())
}

func TestServersThatCanLess(t *testing.T) {
	t.Parallel()
	repo := sourcetest.New(t)
	repo.Write(map[string]string{"f": noise(50_000), "g": "1"})
	one := repo.Commit("one")
	for name, without := range map[string][]string{
		"several acknowledgements": {"multi_ack"}, "detailed ones": {"multi_ack_detailed"}, "thin packs": {"thin-pack"}, "bands": {"side-band"},
		"wide bands": {"side-band-64k"}, "deltas by offset": {"ofs-delta"}, "symbolic refs": {"symref"}, "quiet": {"no-progress"},
		"anything": {"multi_ack", "thin-pack", "side-band", "ofs-delta", "symref", "no-progress", "allow", "no-done", "shallow", "deepen", "filter", "object-format", "agent", "include-tag"},
	} {
		t.Run(name, func(t *testing.T) {
			repo.Branch("main", one)
			g := open(t, source.Config{URL: lacking(t, repo, without...)}, source.Options{})
			wantRevision(t, g, one)
			repo.Write(map[string]string{"g": "2"})
			two := repo.Commit("two")
			if s := wantRevision(t, g, two); files(t, s.Tree)["g"] != "2" {
				t.Error("the files are of another commit")
			}
			wantRevision(t, open(t, source.Config{URL: lacking(t, repo, without...), Ref: source.Ref{Commit: one}}, source.Options{}), one)
		})
	}
}

// TestShallowServers serves clones that lack a part of their history or files.
func TestShallowServers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args []string
		gone bool // where the rest of it is
		// lacks says that the server may be unable to give what it lists.
		lacks bool
	}{
		"shallow":                    {[]string{"--depth=2"}, false, false},
		"shallow, origin gone":       {[]string{"--depth=2"}, true, false},
		"without files":              {[]string{"--filter=blob:none"}, false, true},
		"without files, origin gone": {[]string{"--filter=blob:none"}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			origin, repo := sourcetest.New(t), sourcetest.New(t)
			origin.Git("config", "uploadpack.allowFilter", "true")
			for _, text := range []string{"1", "2", "3", "4"} {
				origin.Write(map[string]string{"f": text, "d/" + text: text})
				origin.Commit(text)
			}
			if err := os.RemoveAll(repo.Dir()); err != nil {
				t.Fatal(err)
			}
			repo.GitIn(filepath.Dir(repo.Dir()), append(append([]string{"clone", "--quiet", "--bare", "--no-local"}, tt.args...), origin.URL(), repo.Dir())...)
			repo.Git("config", "http.receivepack", "true")
			tip := repo.Tip("main")
			if tt.gone {
				origin.Down(true)
			}
			g := open(t, source.Config{URL: repo.URL()}, source.Options{})
			// Some versions of Git bring what is missing when they are asked for it.
			if _, err := g.Latest(context.Background()); err != nil && tt.lacks {
				wantUnavailable(t, g, fault.Unreachable)
				return
			}
			if s := wantRevision(t, g, tip); files(t, s.Tree)["f"] != "4" || len(files(t, s.Tree)) != 5 {
				t.Errorf("the files are %v", files(t, s.Tree))
			}
			wantRevision(t, g, tip)
			repo.Write(map[string]string{"f": "5"})
			five := repo.Commit("5")
			wantRevision(t, g, five)

			// Pull requests on a commit behind which history ends, and on the newest.
			pull := func(parent string) source.PullRef {
				repo.Branch("pull", parent)
				repo.Switch("pull")
				repo.Write(map[string]string{"new": parent})
				defer repo.Switch("main")
				return source.PullRef{Head: "refs/heads/pull", HeadSHA: repo.Commit("pull"), Base: five}
			}
			if p := pull(tip); strings.HasPrefix(name, "shallow") {
				wantPullFails(t, g, p, fault.Unsupported, "only a part of the history")
			}
			if m, err := g.Pull(context.Background(), pull(five)); err != nil || len(m.Conflicts) > 0 || files(t, m.Snapshot.Tree)["f"] != "5" {
				t.Errorf("a pull request on the newest: %+v, %v", m, err)
			}
			// The mirror is whole as far as the server is: nothing is made again.
			before := countPosts(repo)
			wantRevision(t, g, five)
			if after := countPosts(repo); after != before {
				t.Errorf("%d packs were asked for, though nothing moved", after-before)
			}
			repo.Switch("else")
			repo.Orphan()
			repo.Write(map[string]string{"f": "x"})
			p := source.PullRef{Head: "refs/heads/else", HeadSHA: repo.Commit("else"), Base: five}
			if strings.HasPrefix(name, "shallow") {
				wantPullFails(t, g, p, fault.Unsupported, "only a part of the history")
			} else if m, err := g.Pull(context.Background(), p); err != nil || len(m.Conflicts) != 1 || m.Conflicts[0].Kind != source.UnrelatedHistories {
				t.Errorf("a pull request with nothing in common: %+v, %v", m, err)
			}
			wantRevision(t, g, five)
			if after := countPosts(repo); after > before+1 {
				t.Errorf("%d packs were asked for, though nothing moved", after-before)
			}
		})
	}
}

// TestProtocolVersions lets a proxy ask for another version of the protocol.
func TestProtocolVersions(t *testing.T) {
	t.Parallel()
	repo := sourcetest.New(t)
	repo.Write(map[string]string{"f": "1"})
	repo.Commit("one")
	for _, version := range []string{"1", "2"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Set("Git-Protocol", "version="+version)
			repo.ServeHTTP(w, r)
		}))
		defer server.Close()
		ue := wantUnavailable(t, open(t, source.Config{URL: server.URL + "/" + filepath.Base(repo.Dir())}, source.Options{}), fault.Unsupported)
		if !strings.Contains(ue.Error(), "version "+version) {
			t.Errorf("%v", ue)
		}
	}
}
