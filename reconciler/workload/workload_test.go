package workload_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/weir-gitops/weir/reconciler/workload"
	"github.com/weir-gitops/weir/reconciler/workload/workloadtest"
)

func open(t *testing.T, file string) *workload.Cluster {
	t.Helper()
	c, err := workload.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func secret(name string) workload.Secret {
	return workload.Secret{
		Namespace: "kube-system", Name: name, Type: "bootstrap.kubernetes.io/token", Labels: map[string]string{"app": "weir", "pool": "a"},
		Annotations: map[string]string{"weir.dev/pool": "default/a"}, Data: map[string][]byte{"token-secret": []byte("canary-of-the-secret")},
	}
}

func TestSecrets(t *testing.T) {
	server := workloadtest.New(t)
	c := open(t, server.Kubeconfig(t))
	ctx := t.Context()
	made, err := c.CreateSecret(ctx, secret("b"))
	if err != nil || made.UID == "" || made.CreatedAt.IsZero() {
		t.Fatalf("made %#v: %v", made, err)
	}
	if d := cmp.Diff(secret("b"), made, cmpopts.IgnoreFields(workload.Secret{}, "UID", "CreatedAt")); d != "" {
		t.Errorf("read back (-want +got):\n%s", d)
	}
	if got, err := c.Secret(ctx, "kube-system", "b"); err != nil || !cmp.Equal(made, got) {
		t.Errorf("read %v: %v", got, err)
	}
	if _, err := c.CreateSecret(ctx, secret("b")); workload.KindOf(err) != workload.Conflict {
		t.Errorf("made twice: %v", err)
	}
	for _, name := range []string{"a", "c"} {
		if _, err := c.CreateSecret(ctx, secret(name)); err != nil {
			t.Fatal(err)
		}
	}
	server.AddSecret("kube-system", "foreign", "Opaque", map[string]string{"app": "other"}, nil)
	server.AddSecret("default", "a", "Opaque", map[string]string{"app": "weir"}, nil)
	server.SetPage(2, false)
	var names []string
	list, err := c.Secrets(ctx, "kube-system", map[string]string{"app": "weir", "pool": "a"})
	for _, s := range list {
		names = append(names, s.Name)
	}
	if err != nil || strings.Join(names, "") != "abc" {
		t.Errorf("listed %v: %v", names, err)
	}
	if err := c.DeleteSecret(ctx, "kube-system", "b", "another"); workload.KindOf(err) != workload.Conflict {
		t.Errorf("deleted with another uid: %v", err)
	}
	for range 2 {
		if err := c.DeleteSecret(ctx, "kube-system", "b", made.UID); err != nil {
			t.Error(err)
		}
	}
	if _, err := c.Secret(ctx, "kube-system", "b"); workload.KindOf(err) != workload.NotFound {
		t.Errorf("a deleted secret: %v", err)
	}
	if text := fmt.Sprintf("%v %+v %#v %s", made, made, made, []workload.Secret{made}); strings.Contains(text, "canary") || strings.Contains(text, "99 97") {
		t.Errorf("a secret prints as %s", text)
	}
}

func TestNodes(t *testing.T) {
	for _, expires := range []bool{false, true} {
		server := workloadtest.New(t)
		c := open(t, server.Kubeconfig(t))
		for i := range 7 {
			server.AddNode(fmt.Sprintf("n%d", i), fmt.Sprintf("aws:///eu-west-1a/i-%d", i), []string{"True", "False", "Unknown"}[i%3])
		}
		server.SetPage(3, expires)
		nodes, err := c.Nodes(t.Context())
		if err != nil || len(nodes) != 7 {
			t.Fatalf("%d nodes: %v", len(nodes), err)
		}
		for i, n := range nodes {
			want := workload.Node{
				Name: fmt.Sprintf("n%d", i), UID: n.UID, ProviderID: fmt.Sprintf("aws:///eu-west-1a/i-%d", i), Ready: i%3 == 0,
				ReadySince: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Created: n.Created,
			}
			if i%3 != 0 {
				want.Why = []string{"", "KubeletFalse: said by the kubelet", "KubeletUnknown: said by the kubelet"}[i%3]
			}
			if n.UID == "" || !cmp.Equal(want, n) {
				t.Errorf("node %+v, want %+v", n, want)
			}
		}
	}
}

func TestVersion(t *testing.T) {
	server := workloadtest.New(t)
	c := open(t, server.Kubeconfig(t))
	if got, err := c.Version(t.Context()); got != "v1.34.2" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	server.Fail(workloadtest.Fault{Path: "/version", Status: 403})
	if _, err := c.Version(t.Context()); workload.KindOf(err) != workload.Forbidden {
		t.Error(err)
	}
}

func TestFailures(t *testing.T) {
	for name, tc := range map[string]struct {
		fault workloadtest.Fault
		want  workload.Kind
		say   string
	}{
		"401":       {workloadtest.Fault{Status: 401}, workload.Unauthorized, "scripted fault"},
		"403":       {workloadtest.Fault{Status: 403}, workload.Forbidden, "scripted fault"},
		"404":       {workloadtest.Fault{Status: 404}, workload.NotFound, "list secrets in kube-system"},
		"409":       {workloadtest.Fault{Status: 409}, workload.Conflict, ""},
		"422":       {workloadtest.Fault{Status: 422}, workload.Invalid, ""},
		"429":       {workloadtest.Fault{Status: 429}, workload.Transient, ""},
		"500":       {workloadtest.Fault{Status: 500}, workload.Transient, ""},
		"503":       {workloadtest.Fault{Status: 503, Body: "<html>down</html>"}, workload.Transient, "503 Service Unavailable"},
		"redirect":  {workloadtest.Fault{Status: 302, Body: "elsewhere"}, workload.Invalid, "302"},
		"hangs up":  {workloadtest.Fault{}, workload.Transient, "EOF"},
		"no JSON":   {workloadtest.Fault{Status: 200, Body: "<html>"}, workload.Transient, "not the JSON"},
		"other 410": {workloadtest.Fault{Status: 410}, workload.Transient, ""},
	} {
		t.Run(name, func(t *testing.T) {
			server := workloadtest.New(t)
			c := open(t, server.Kubeconfig(t))
			server.Fail(tc.fault)
			_, err := c.Secrets(t.Context(), "kube-system", nil)
			if workload.KindOf(err) != tc.want || !strings.Contains(err.Error(), tc.say) {
				t.Errorf("got %v, kind %q", err, workload.KindOf(err))
			}
			if strings.Contains(err.Error(), workloadtest.Token) {
				t.Errorf("the error holds the token: %v", err)
			}
		})
	}
}

func TestRequestEndsWithItsContext(t *testing.T) {
	server := workloadtest.New(t)
	c := open(t, server.Kubeconfig(t))
	server.Fail(workloadtest.Fault{Delay: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for len(server.Log()) == 0 { // until the request has arrived
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	_, err := c.Nodes(ctx)
	if workload.KindOf(err) != workload.Transient || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestRefusedSecretIsNotQuoted checks that a server that repeats what it was sent
// does not lead to a secret in an error.
func TestRefusedSecretIsNotQuoted(t *testing.T) {
	for _, status := range []int{400, 409, 422, 500} {
		server := workloadtest.New(t)
		c := open(t, server.Kubeconfig(t))
		server.Fail(workloadtest.Fault{Status: status, Body: `{"kind":"Status","reason":"Invalid","message":"bad value canary-of-the-secret ` +
			base64.StdEncoding.EncodeToString([]byte("canary-of-the-secret")) + `"}`})
		_, err := c.CreateSecret(t.Context(), secret("a"))
		if err == nil || strings.Contains(err.Error(), "bad value") || !strings.Contains(err.Error(), "Invalid") {
			t.Errorf("got %v", err)
		}
	}
}

func TestWrongCredentials(t *testing.T) {
	server := workloadtest.New(t)
	file := server.Kubeconfig(t)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// A token file is read at each request, so a new token is taken at once.
	tokenFile := filepath.Join(filepath.Dir(file), "token")
	if err := os.WriteFile(tokenFile, []byte("stale\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text = []byte(strings.Replace(string(text), "token: "+workloadtest.Token, "tokenFile: token", 1))
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	c := open(t, file)
	if _, err := c.Nodes(t.Context()); workload.KindOf(err) != workload.Unauthorized {
		t.Errorf("a stale token: %v", err)
	}
	if err := os.WriteFile(tokenFile, []byte(workloadtest.Token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Nodes(t.Context()); err != nil {
		t.Error(err)
	}
	if err := os.Remove(tokenFile); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Nodes(t.Context()); workload.KindOf(err) != workload.Unauthorized {
		t.Errorf("without its token file: %v", err)
	}
	// Another server's certificate is not trusted.
	other := workloadtest.New(t)
	text = []byte(strings.Replace(string(text), server.URL(), strings.Replace(other.URL(), "127.0.0.1", "localhost", 1), 1))
	text = []byte(strings.Replace(string(text), "tokenFile: token", "token: x", 1))
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, file).Nodes(t.Context()); workload.KindOf(err) != workload.Unauthorized {
		t.Errorf("a server of another name: %v", err)
	}
}

func TestKubeconfigs(t *testing.T) {
	ca := base64.StdEncoding.EncodeToString(workloadtest.New(t).CA())
	config := func(cluster, user string) string {
		return "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts:\n- {name: c, context: {cluster: k, user: u}}\nclusters:\n- {name: other, cluster: {server: 'http://no'}}\n- name: k\n  cluster: {" +
			cluster + "}\nusers:\n- name: u\n  user:\n    " + user + "\n"
	}
	const https = "server: 'https://api.example.org:6443'"
	for name, tc := range map[string]struct{ text, want string }{
		"exec":              {config(https, "exec: {command: aws}"), "exec plugin"},
		"auth provider":     {config(https, "auth-provider: {name: gcp}"), "auth-provider"},
		"password":          {config(https, "username: canary-user"), "password"},
		"impersonation":     {config(https, "{token: t, as: admin}"), "impersonates"},
		"insecure":          {config(https+", insecure-skip-tls-verify: true", "token: t"), "insecure-skip-tls-verify"},
		"no TLS":            {config("server: 'http://api.example.org'", "token: t"), "without TLS"},
		"user in address":   {config("server: 'https://canary:b@api.example.org'", "token: t"), "not the address"},
		"no server":         {config("", "token: t"), "not the address"},
		"no credentials":    {config(https, "{}"), "no credentials"},
		"certificate alone": {config(https, "client-certificate-data: "+ca), "only a client certificate, or only a key"},
		"bad certificate":   {config(https, "{client-certificate-data: "+ca+", client-key-data: "+ca+"}"), "client certificate and key"},
		"not base64":        {config(https, "client-key-data: '*canary*'"), "not base64"},
		"bad CA":            {config(https+", certificate-authority-data: Y2FuYXJ5", "token: t"), "has no PEM"},
		"missing file":      {config(https+", certificate-authority: none.pem", "token: t"), "certificate-authority cannot be read"},
		"bad proxy":         {config(https+", proxy-url: 'ftp://canary'", "token: t"), "proxy-url"},
		"broken token":      {config(https, `token: "canary a"`), "white space"},
		"no context":        {"kind: Config\n", "current-context"},
		"no cluster":        {strings.Replace(config(https, "token: t"), "cluster: k,", "cluster: z,", 1), "cluster that is not there"},
		"no user":           {strings.Replace(config(https, "token: t"), "user: u}", "user: z}", 1), "user that is not there"},
		"another kind":      {"kind: Secret\n", "kind"},
		"no YAML":           {"{canary", "not the YAML"},
		"other types":       {"contexts: canary\n", "not the YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "kubeconfig")
			if err := os.WriteFile(file, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := workload.Open(file)
			var bad *workload.BadKubeconfig
			if !errors.As(err, &bad) || !strings.Contains(err.Error(), tc.want) || bad.Advice == "" {
				t.Fatalf("got %v, want %q", err, tc.want)
			}
			if strings.Contains(err.Error(), "canary") {
				t.Errorf("the error quotes the file: %v", err)
			}
		})
	}
	for name, text := range map[string]string{
		"token":       config(https+", certificate-authority-data: "+ca, "token: t"),
		"loopback":    config("server: 'http://127.0.0.1:8001'", "token: t"),
		"proxy, name": config(https+", tls-server-name: a, proxy-url: 'socks5://p:1'", "token: t"),
	} {
		file := filepath.Join(t.TempDir(), "kubeconfig")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := workload.Open(file); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := workload.Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func TestConfigMap(t *testing.T) {
	server := workloadtest.New(t)
	c := open(t, server.Kubeconfig(t))
	data, err := c.ConfigMap(t.Context(), "kube-public", "cluster-info")
	if err != nil || !strings.Contains(data["kubeconfig"], "certificate-authority-data") {
		t.Errorf("%v: %v", data, err)
	}
	if _, err := c.ConfigMap(t.Context(), "kube-public", "none"); workload.KindOf(err) != workload.NotFound {
		t.Error(err)
	}
	if log := server.Log(); len(log) != 2 || log[0] != http.MethodGet+" /api/v1/namespaces/kube-public/configmaps/cluster-info" {
		t.Error(log)
	}
}
