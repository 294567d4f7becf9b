package main

import (
	"bytes"
	"cmp"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/iampolicy"
	"github.com/weir-gitops/weir/reconciler/iampolicy/policytest"
)

// pastWeir marks requests that a test makes itself.
const pastWeir = "Past-Weir"

// watcher is an AWS that notes what IAM would be asked about each call, before the
// call changes anything.
type watcher struct {
	t   *testing.T
	emu *awsemu.Server

	mu    sync.Mutex
	calls []policytest.Asked
	// elsewhere are the access keys of roles in other accounts, whose tags are not
	// looked at.
	elsewhere []string
}

var accessKeyID = regexp.MustCompile(`<AccessKeyId>(\w+)</AccessKeyId>`)

func (w *watcher) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // weir was stopped in the middle
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	by := r.Header.Get("Authorization")
	if r.Header.Get(pastWeir) == "" && !strings.Contains(r.UserAgent(), "Terraform") && strings.Count(by, "/") >= 4 && !w.isElsewhere(by) {
		questions := policytest.Questions(w.t, w.emu, r, body)
		w.mu.Lock()
		w.calls = append(w.calls, questions...)
		w.mu.Unlock()
	}
	if !bytes.Contains(body, []byte("Action=AssumeRole&")) || bytes.Contains(body, []byte("iam%3A%3A000000000000%3Arole")) {
		w.emu.ServeHTTP(rw, r)
		return
	}
	answer := httptest.NewRecorder()
	w.emu.ServeHTTP(answer, r)
	if key := accessKeyID.FindStringSubmatch(answer.Body.String()); key != nil {
		w.mu.Lock()
		w.elsewhere = append(w.elsewhere, key[1])
		w.mu.Unlock()
	}
	maps.Copy(rw.Header(), answer.Header())
	rw.WriteHeader(answer.Code)
	_, _ = answer.Body.WriteTo(rw) // weir was stopped in the middle
}

func (w *watcher) isElsewhere(authorization string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.elsewhere, func(key string) bool { return strings.Contains(authorization, "Credential="+key+"/") })
}

// take returns what was asked since the last time.
func (w *watcher) take() []policytest.Asked {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.calls
	w.calls = nil
	return out
}

// fits holds the calls of a script against the policies of the instance that a
// resource belongs to, or is to belong to. Only scripts that adopt may take.
func fits(t *testing.T, script string, calls []policytest.Asked) {
	t.Helper()
	said := map[string]bool{}
	for _, a := range calls {
		owner, next := a.Context["aws:ResourceTag/weir.dev/owner"], a.Context["aws:RequestTag/weir.dev/owner"]
		scope := iampolicy.Scope{
			Partition: "aws", Account: "000000000000", Regions: []string{a.Context["aws:RequestedRegion"]}, Instance: cmp.Or(next, owner),
			Parameters: []string{"*"}, Alarms: true, Drains: true, Adopt: strings.Contains(script, "adopt"),
		}
		if next != "" && owner != next && scope.Adopt {
			scope.From = owner
		}
		if strings.HasPrefix(a.Resource, "arn:aws:iam:") {
			scope.Pass(a.Resource)
		}
		if iampolicy.Needless()[a.Action] != "" || said[a.Action+a.Resource] {
			continue
		}
		if a.Action == "sts:AssumeRole" { // by the daemon itself
			if scope.AssumeRoles = []string{a.Resource}; !policytest.Allows(t, iampolicy.Make(iampolicy.Daemon, scope), a) {
				t.Errorf("%s: IAM would refuse %s on %s", script, a.Action, a.Resource)
			}
			continue
		}
		if !policytest.Allows(t, iampolicy.Make(iampolicy.Apply, scope), a) || !a.Behalf && policytest.Allows(t, iampolicy.Make(iampolicy.Plan, scope), a) == a.Write {
			said[a.Action+a.Resource] = true
			t.Errorf("%s: IAM would refuse %s on %s with %v, or allow it for a plan", script, a.Action, a.Resource, a.Context)
		}
	}
}
