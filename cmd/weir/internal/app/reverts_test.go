package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/awsemu/ec2"
	"github.com/weir-gitops/weir/reconciler/step"
)

// proposed is a pull request that weir opened on a fakeForge.
type proposed struct{ Title, Body, Head, Base string }

// servePushes has a fakeForge keep the repository itself, as forges do, and take pull
// requests.
func (w *world) servePushes() *[]proposed {
	f, all := w.forge, &[]proposed{}
	f.mux.HandleFunc("/platform/fleet.git/", func(rw http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != "push-t0ken" {
			rw.Header().Set("WWW-Authenticate", "Basic")
			http.Error(rw, "who are you", http.StatusUnauthorized)
			return
		}
		r.URL.Path = "/" + filepath.Base(w.repo.Dir()) + strings.TrimPrefix(r.URL.Path, "/platform/fleet.git")
		w.repo.ServeHTTP(rw, r)
	})
	f.mux.HandleFunc("GET "+fakeRepo+"/pulls/main/weir/{branch}", func(rw http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, p := range f.pulls {
			if p.branch == "weir/"+r.PathValue("branch") {
				_ = json.NewEncoder(rw).Encode(p.json(f.url))
				return
			}
		}
		http.Error(rw, `{"message":"not found"}`, http.StatusNotFound)
	})
	f.mux.HandleFunc("POST "+fakeRepo+"/pulls", func(rw http.ResponseWriter, r *http.Request) {
		var in proposed
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.Header.Get("Authorization") != "token push-t0ken" {
			http.Error(rw, `{"message":"no"}`, http.StatusForbidden)
			return
		}
		f.mu.Lock()
		n := 100 + len(*all)
		*all = append(*all, in)
		f.mu.Unlock()
		f.change(n, func(p *fakePull) {
			p.author, p.branch, p.title, p.head = "weir-bot", in.Head, in.Title, w.repo.Tip(in.Head)
		})
		f.mu.Lock()
		defer f.mu.Unlock()
		rw.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(rw).Encode(f.pulls[len(f.pulls)-1].json(f.url))
	})
	f.mux.HandleFunc("PATCH "+fakeRepo+"/pulls/{number}", func(rw http.ResponseWriter, r *http.Request) {
		f.change(100, func(p *fakePull) { p.state = "closed" })
		f.mu.Lock()
		defer f.mu.Unlock()
		_ = json.NewEncoder(rw).Encode(f.pulls[0].json(f.url))
	})
	if err := os.WriteFile(filepath.Join(w.dir, "push-token"), []byte("push-t0ken\n"), 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.forgeExtra = ", pullRequests: {plan: never}, push: {tokenFile: push-token, for: [revert, images]}"
	return all
}

func (f *fakeForge) proposals(all *[]proposed) []proposed {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(*all)
}

// TestAStoppedChangeIsProposedToBeReverted: the image never comes up, one pull request takes
// the change back, and merging it puts all right.
func TestAStoppedChangeIsProposedToBeReverted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.extra = otherTargets
	all := w.servePushes()
	spec := "  waves:\n  - name: canary\n    selector: {targets: [third]}\n"
	w.repo.Write(inWaves("m5.large", spec))
	first := w.repo.Commit("first")
	a, stop := w.start()
	for _, target := range []string{"prod", "second", "third"} {
		targetConverged(t, a, target, first)
	}
	w.aws.Faults().Launches.Add(ec2.LaunchFault{InstanceType: "m6i.large"})
	files := inWaves("m6i.large", spec)
	files["README.md"] = "said along with it"
	w.repo.Write(files)
	bad := w.repo.Commit("a bad `change`")
	heldBy(t, a, "second", bad, step.HeldStopped, "weir reconcile second --retry")
	var p proposed
	eventually(t, "a pull request", func() string {
		list := w.forge.proposals(all)
		if len(list) != 1 {
			return fmt.Sprint(list)
		}
		p = list[0]
		return ""
	})
	if p.Base != "main" || p.Head != "weir/revert-"+bad[:12] || p.Title != "Revert \"a bad `change`\"" {
		t.Errorf("%+v", p)
	}
	for _, want := range []string{"default/nodes", "third default/", "second default/", "overlays/third/pool.yaml", "overlays/prod/pool.yaml"} {
		if !strings.Contains(p.Body, want) {
			t.Errorf("%q is not in the text:\n%s", want, p.Body)
		}
	}
	// A change of three pools was stopped, so three files go back, and no other one.
	if got := w.repo.Git("diff", "--name-only", bad, p.Head); got != "overlays/prod/pool.yaml\noverlays/second/pool.yaml\noverlays/third/pool.yaml" {
		t.Errorf("the branch changes %s", got)
	}
	eventually(t, "the status of the commit", func() string {
		if state, text := w.forge.last(bad, "fleet/revert"); state != "success" || !strings.Contains(text, "#100") {
			return state + " " + text
		}
		return ""
	})
	w.forge.mu.Lock()
	if w.forge.tokens["token push-t0ken"] {
		t.Error("a status was written with the token that may push")
	}
	w.forge.mu.Unlock()
	stop()

	// Another daemon opens no second one.
	a, stop = w.start()
	defer stop()
	heldBy(t, a, "second", bad, step.HeldStopped, "weir reconcile second --retry")
	if n := len(w.forge.proposals(all)); n != 1 {
		t.Errorf("%d pull requests", n)
	}
	// Merging it puts all right.
	w.forge.change(100, func(p *fakePull) { p.state, p.merged = "closed", w.repo.Tip(p.branch) })
	w.repo.Git("update-ref", "refs/heads/main", p.Head)
	merged := w.repo.Tip("main")
	for _, target := range []string{"prod", "second", "third"} {
		targetConverged(t, a, target, merged)
	}
	if n := len(w.forge.proposals(all)); n != 1 {
		t.Errorf("%d pull requests", n)
	}
}
