// Package workloadtest is an API server for tests, with Secrets, Nodes, Pods, PodDisruptionBudgets and one
// ConfigMap. It speaks the API's JSON over TLS, checks the bearer token, pages its lists, evicts pods within
// their budgets, and fails as a test requests.
package workloadtest

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"
)

// Token is the bearer token that the server accepts.
const Token = "workload-bearer-4f1c9a7be2"

// Fault fails requests.
type Fault struct {
	// Method and Path select requests. Path is a prefix. Both may be empty.
	Method, Path string
	// Times is the number of requests that fail. Zero means all.
	Times int
	// Status is the status of the answer. Zero closes the connection without an answer.
	Status int
	// After makes the request take effect before it fails.
	After bool
	// Body replaces the Status object in the answer, if not empty.
	Body string
	// Delay is the time before the request is handled, unless the client gives up earlier.
	Delay time.Duration

	// skip is the number of requests that succeed before the first fault.
	skip int
}

// Server is a workload cluster.
type Server struct {
	http *httptest.Server

	mu      sync.Mutex
	secrets map[string]object // by namespace/name
	nodes   map[string]object
	pods    map[string]object
	budgets map[string]object
	// ignore lists pods that their kubelet does not terminate.
	ignore map[string]bool
	// evicted lists the pods with an accepted eviction, once for every eviction.
	evicted []string
	before  func(method, path string)
	faults  []*Fault
	log     []string
	uid     int
	clock   func() time.Time
	// page is the server's own limit for a page.
	page    int
	expired bool
}

type object = map[string]any

// New starts a server that ends with the test.
func New(t testing.TB) *Server { return On(t, nil) }

// On is like New, with a listener. A nil listener means one on this machine.
func On(t testing.TB, l net.Listener) *Server {
	s := &Server{secrets: map[string]object{}, nodes: map[string]object{}, pods: map[string]object{}, budgets: map[string]object{}, ignore: map[string]bool{}, clock: time.Now}
	s.http = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	if l != nil {
		_ = s.http.Listener.Close()
		s.http.Listener = l
	}
	s.http.StartTLS()
	s.http.Config.ErrorLog = nil
	t.Cleanup(s.http.Close)
	return s
}

// URL returns the server's address.
func (s *Server) URL() string { return s.http.URL }

// CA returns the server's certificate in PEM.
func (s *Server) CA() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.http.Certificate().Raw})
}

// Kubeconfig writes a kubeconfig for the server and returns its file name.
func (s *Server) Kubeconfig(t testing.TB) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: demo
clusters:
- {name: demo, cluster: {server: %q, certificate-authority-data: %s}}
users:
- {name: weir, user: {token: %s}}
contexts:
- {name: demo, context: {cluster: demo, user: weir}}
`, s.URL(), base64.StdEncoding.EncodeToString(s.CA()), Token)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// SetClock sets the server's clock.
func (s *Server) SetClock(now func() time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock = now
}

// SetPage bounds pages to n objects. With expires, the first request for a further page gets status 410.
func (s *Server) SetPage(n int, expires bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.page, s.expired = n, expires
}

// Before makes the server call f before each request. It must be set before the first request.
func (s *Server) Before(f func(method, path string)) { s.before = f }

// Fail adds a fault. Faults apply in the order in which they were added.
func (s *Server) Fail(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &f)
}

// FailAt makes the nth request from now on fail, counted from 1.
func (s *Server) FailAt(n int, f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.Times, f.skip = 1, n-1
	s.faults = append(s.faults, &f)
}

// Heal removes all faults.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// Log returns the requests since the last call, as "POST /api/v1/…".
func (s *Server) Log() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.log
	s.log = nil
	return out
}

// AddNode adds or replaces a node whose Ready condition changed last on 2 January 2026.
func (s *Server) AddNode(name, providerID, ready string) {
	s.AddNodeSince(name, providerID, ready, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
}

// AddNodeSince is like AddNode, with the time of the last change of its Ready condition.
func (s *Server) AddNodeSince(name, providerID, ready string, since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uid++
	s.nodes["/"+name] = object{
		"metadata": object{"name": name, "uid": fmt.Sprintf("node-%d", s.uid)}, "spec": object{"providerID": providerID},
		"status": object{"conditions": []any{
			object{"type": "MemoryPressure", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"},
			object{"type": "Ready", "status": ready, "reason": "Kubelet" + ready, "message": "said by the kubelet", "lastTransitionTime": since.UTC().Format(time.RFC3339)},
		}},
	}
}

// RemoveNode removes a node.
func (s *Server) RemoveNode(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.nodes, "/"+name)
}

func (s *Server) fault(r *http.Request) *Fault {
	for i, f := range s.faults {
		if f.Method != "" && f.Method != r.Method || !strings.HasPrefix(r.URL.Path, f.Path) {
			continue
		}
		if f.skip > 0 {
			f.skip--
			continue
		}
		out := *f
		if f.Times == 1 {
			s.faults = slices.Delete(s.faults, i, i+1)
		} else if f.Times > 1 {
			f.Times--
		}
		return &out
	}
	return nil
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if s.before != nil {
		s.before(r.Method, r.URL.Path)
	}
	s.mu.Lock()
	s.log = append(s.log, r.Method+" "+r.URL.Path)
	f := s.fault(r)
	s.mu.Unlock()
	if f != nil && f.Delay > 0 {
		select {
		case <-time.After(f.Delay):
		case <-r.Context().Done():
			return
		}
	}
	if f != nil && !f.After {
		answerFault(w, f)
		return
	}
	s.mu.Lock()
	status, out := s.answer(r, body)
	s.mu.Unlock()
	if f != nil {
		answerFault(w, f)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(out)
}

func answerFault(w http.ResponseWriter, f *Fault) {
	if f.Status == 0 {
		panic(http.ErrAbortHandler)
	}
	if f.Body == "" {
		f.Body = fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"scripted fault","reason":"Fault","code":%d}`, f.Status)
	}
	w.WriteHeader(f.Status)
	_, _ = io.WriteString(w, f.Body)
}

func refuse(status int, reason, format string, args ...any) (int, object) {
	return status, object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": status, "message": fmt.Sprintf(format, args...)}
}

func (s *Server) answer(r *http.Request, body []byte) (int, object) {
	if r.Header.Get("Authorization") != "Bearer "+Token {
		return refuse(http.StatusUnauthorized, "Unauthorized", "Unauthorized")
	}
	if r.URL.Path == "/version" {
		return http.StatusOK, object{"major": "1", "minor": "34", "gitVersion": "v1.34.2"}
	}
	if r.URL.Path == "/apis/policy/v1/poddisruptionbudgets" && r.Method == http.MethodGet {
		return s.allBudgets(r)
	}
	rest, ok := strings.CutPrefix(r.URL.Path, "/api/v1/")
	if !ok {
		return refuse(http.StatusNotFound, "NotFound", "the server could not find the requested resource")
	}
	if rest == "nodes" && r.Method == http.MethodGet {
		return s.list("Node", s.nodes, "", r)
	}
	parts := strings.Split(rest, "/")
	if status, out := s.workloads(parts, r, body); status != 0 {
		return status, out
	}
	if len(parts) == 4 && parts[0] == "namespaces" && parts[2] == "configmaps" && r.Method == http.MethodGet {
		return s.configMap(parts[1]+"/"+parts[3], parts[3])
	}
	if len(parts) < 3 || len(parts) > 4 || parts[0] != "namespaces" || parts[2] != "secrets" {
		return refuse(http.StatusNotFound, "NotFound", "the server could not find the requested resource")
	}
	if len(parts) == 3 {
		return s.all(parts[1], r, body)
	}
	return s.one(parts[1]+"/"+parts[3], parts[3], r, body)
}

// configMap handles requests for one ConfigMap.
func (s *Server) configMap(key, name string) (int, object) {
	if key == "kube-public/cluster-info" {
		return http.StatusOK, object{"data": object{"kubeconfig": s.clusterInfo()}}
	}
	return refuse(http.StatusNotFound, "NotFound", "configmaps %q not found", name)
}

// clusterInfo returns the kubeconfig that kubeadm publishes.
func (s *Server) clusterInfo() string {
	return fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters:\n- cluster:\n    certificate-authority-data: %s\n    server: https://api.example.org:6443\n  name: \"\"\n",
		base64.StdEncoding.EncodeToString(s.CA()))
}

func (s *Server) list(kind string, from map[string]object, namespace string, r *http.Request) (int, object) {
	q := r.URL.Query()
	var names []string
	for key, o := range from {
		if ns, _, _ := strings.Cut(key, "/"); (ns == namespace || namespace == everywhere) && selected(o, q.Get("labelSelector")) && bound(o, q.Get("fieldSelector")) {
			names = append(names, key)
		}
	}
	slices.Sort(names)
	limit, _ := strconv.Atoi(q.Get("limit"))
	if s.page > 0 && (limit == 0 || limit > s.page) {
		limit = s.page
	}
	begin := 0
	if after := q.Get("continue"); after != "" {
		if s.expired {
			s.expired = false
			return refuse(http.StatusGone, "Expired", "The provided continue parameter is too old")
		}
		begin, _ = slices.BinarySearch(names, after)
		if begin < len(names) && names[begin] == after {
			begin++
		}
	}
	items := []object{}
	meta := object{"resourceVersion": "1"}
	for i := begin; i < len(names); i++ {
		if limit > 0 && len(items) == limit {
			meta["continue"] = names[i-1]
			break
		}
		items = append(items, from[names[i]])
	}
	return http.StatusOK, object{"kind": kind + "List", "apiVersion": "v1", "metadata": meta, "items": items}
}

func selected(o object, selector string) bool {
	wanted, err := labels.Parse(selector)
	if err != nil {
		return false
	}
	m, _ := o["metadata"].(object)
	have, _ := m["labels"].(object)
	set := labels.Set{}
	for k, v := range have {
		set[k], _ = v.(string)
	}
	return wanted.Matches(set)
}
