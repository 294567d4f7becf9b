package userdata_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/weir-gitops/weir/render/userdata"
)

// An access key as EC2 gives it to a machine, with every kind of character.
const (
	keyID         = "ASIAEXAMPLE"
	keySecret     = "canary+secret/key"
	sessionToken  = "canary//session+token=="
	metadataToken = "canary-metadata=="
)

// machine is what an instance can reach: EC2's metadata service and Systems Manager.
type machine struct {
	t              *testing.T
	metadata, ssm  *httptest.Server
	value          string
	status, notYet int
	fetched        int
}

func newMachine(t *testing.T, value string) *machine {
	m := &machine{t: t, value: value, status: http.StatusOK}
	m.metadata = httptest.NewServer(http.HandlerFunc(m.serveMetadata))
	m.ssm = httptest.NewTLSServer(http.HandlerFunc(m.serveSSM))
	t.Cleanup(m.metadata.Close)
	t.Cleanup(m.ssm.Close)
	return m
}

func (m *machine) serveMetadata(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPut && r.URL.Path == "/latest/api/token" && r.Header.Get("X-Aws-Ec2-Metadata-Token-Ttl-Seconds") != "" {
		_, _ = io.WriteString(w, metadataToken)
		return
	}
	if r.Header.Get("X-Aws-Ec2-Metadata-Token") != metadataToken {
		http.Error(w, "", http.StatusUnauthorized)
		return
	}
	switch r.URL.Path {
	case "/latest/meta-data/services/domain":
		_, _ = io.WriteString(w, "amazonaws.com.cn")
	case "/latest/meta-data/iam/security-credentials/":
		if m.notYet--; m.notYet >= 0 {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, "nodes.role")
	case "/latest/meta-data/iam/security-credentials/nodes.role":
		_, _ = fmt.Fprintf(w, "{\n  \"Code\" : \"Success\",\n  \"AccessKeyId\" : %q,\n  \"SecretAccessKey\" : %q,\n  \"Token\" : %q,\n  \"Expiration\" : \"2031-01-01T00:00:00Z\"\n}", keyID, keySecret, sessionToken)
	default:
		http.NotFound(w, r)
	}
}

func (m *machine) serveSSM(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	const want = `{"Name":"/weir/prod/demo/default/web","WithDecryption":true}`
	if string(body) != want || r.Host != "ssm.cn-north-1.amazonaws.com.cn" || r.Header.Get("X-Amz-Target") != "AmazonSSM.GetParameter" || r.Header.Get("Content-Type") != "application/x-amz-json-1.1" {
		m.t.Errorf("Systems Manager is asked %s %q %s with %v", r.Method, r.Host, body, r.Header)
	}
	if r.Header.Get("X-Amz-Security-Token") != sessionToken {
		m.t.Errorf("the session token is %q", r.Header.Get("X-Amz-Security-Token"))
	}
	if got, want := r.Header.Get("Authorization"), m.signed(r, body); !strings.HasSuffix(got, "Signature="+want) {
		m.t.Errorf("the request is signed %s, want %s", got, want)
	}
	m.fetched++
	w.WriteHeader(m.status)
	_, _ = fmt.Fprintf(w, `{"Parameter":{"ARN":"arn:aws-cn:ssm:x","DataType":"text","LastModifiedDate":1.7E9,"Name":"/weir/prod/demo/default/web","Type":"SecureString","Value":"%s","Version":7}}`, m.value)
}

// signed is the signature (version 4) that AWS reckons for a request.
func (m *machine) signed(r *http.Request, body []byte) string {
	_, headers, _ := strings.Cut(r.Header.Get("Authorization"), "SignedHeaders=")
	headers, _, _ = strings.Cut(headers, ",")
	var lines strings.Builder
	for name := range strings.SplitSeq(headers, ";") {
		value := r.Header.Get(name)
		if name == "host" {
			value = r.Host
		}
		lines.WriteString(name + ":" + value + "\n")
	}
	if !strings.Contains(headers, "x-amz-security-token") {
		m.t.Errorf("signed are %s", headers)
	}
	hash := func(b []byte) string { s := sha256.Sum256(b); return hex.EncodeToString(s[:]) }
	date := r.Header.Get("X-Amz-Date")
	scope := date[:8] + "/cn-north-1/ssm/aws4_request"
	canonical := "POST\n/\n\n" + lines.String() + "\n" + headers + "\n" + hash(body)
	key := []byte("AWS4" + keySecret)
	for part := range strings.SplitSeq(scope, "/") {
		key = mac(key, part)
	}
	return hex.EncodeToString(mac(key, "AWS4-HMAC-SHA256\n"+date+"\n"+scope+"\n"+hash([]byte(canonical))))
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// disk writes what Ignition would, below a directory, and programs that take the
// place of those that reach out of the test.
func (m *machine) disk(shell, version string) string {
	m.t.Helper()
	f := userdata.FetchedToken{Parameter: "/weir/prod/demo/default/web", Region: "cn-north-1", Endpoint: true, CA: true}
	d := ignitionOf(m.t, userdata.Kubeadm{Join: userdata.Join{Minor: 31, Fetched: &f}, PreCommands: []string{"sed -i s/weir-ca-hashes/weir-ca-hashes/ /etc/kubeadm.yml"}}, userdata.Ignition{Version: version})
	dir := m.t.TempDir()
	for _, file := range d.Storage.Files {
		content := strings.NewReplacer("/etc/", dir+"/etc/", "/run/", dir+"/run/", "/tmp/", dir+"/tmp/", "/bin/bash", shell).Replace(d.content(m.t, file.Path))
		m.write(filepath.Join(dir, file.Path), content)
	}
	for _, name := range []string{"run", "tmp"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			m.t.Fatal(err)
		}
	}
	curl, err := exec.LookPath("curl")
	if err != nil {
		m.t.Skip("curl is not installed")
	}
	to := func(s *httptest.Server) string { return s.Listener.Addr().String() }
	m.write(filepath.Join(dir, "bin/curl"), "#!/bin/sh\nexec "+curl+" --connect-to 169.254.169.254:80:"+to(m.metadata)+" --connect-to ssm.cn-north-1.amazonaws.com.cn:443:"+to(m.ssm)+" -k \"$@\"\n")
	m.write(filepath.Join(dir, "bin/sleep"), "#!/bin/sh\n")
	m.write(filepath.Join(dir, "bin/kubeadm"), "#!/bin/sh\n[ -f "+dir+"/joins ] && cp \"$3\" "+dir+"/joined\n")
	return dir
}

func (m *machine) write(name, content string) {
	m.t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o700); err != nil {
		m.t.Fatal(err)
	}
}

// boot runs what the unit runs.
func (m *machine) boot(shell, dir string) (output string, ok bool) {
	cmd := exec.CommandContext(m.t.Context(), shell, filepath.Join(dir, "etc/kubeadm.sh"))
	cmd.Env = []string{"PATH=" + filepath.Join(dir, "bin") + ":" + os.Getenv("PATH"), "https_proxy=http://127.0.0.1:1", "no_proxy=amazonaws.com.cn"}
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

// TestIgnitionFetchesItsToken boots machines that have no AWS CLI, with the real curl:
// what it signs is what AWS reckons. A machine that could not join keeps nothing of
// the token on its disk, and joins at its next boot with the token of that time.
func TestIgnitionFetchesItsToken(t *testing.T) {
	for _, shell := range shells(t) {
		for _, version := range []string{"2.3", "3.4"} {
			m := newMachine(t, "abcdef.aaaaaaaaaaaaaaaa [fd00::1]:6443 "+hashA+" "+hashB)
			m.notYet = 3
			dir := m.disk(shell, version)
			if out, ok := m.boot(shell, dir); ok || strings.Contains(out, "canary") || strings.Contains(out, "aaaaaaaaaaaaaaaa") {
				t.Fatalf("%s %s: kubeadm fails: %v %s", shell, version, ok, out)
			}
			if onDisk := read(t, filepath.Join(dir, "etc/kubeadm.yml")); strings.Contains(onDisk, "abcdef") || !strings.Contains(onDisk, "weir-join-token") {
				t.Errorf("the disk holds\n%s", onDisk)
			}
			m.value = joinToken + " [fd00::1]:6443 " + hashA + " " + hashB
			m.write(filepath.Join(dir, "joins"), "")
			if out, ok := m.boot(shell, dir); !ok || out != "" {
				t.Fatalf("%s %s: %v %s", shell, version, ok, out)
			}
			var config map[string]any
			if err := yaml.Unmarshal([]byte(read(t, filepath.Join(dir, "joined"))), &config); err != nil {
				t.Fatal(err)
			}
			token := config["discovery"].(map[string]any)["bootstrapToken"].(map[string]any)
			if token["token"] != joinToken || token["apiServerEndpoint"] != "[fd00::1]:6443" || fmt.Sprint(token["caCertHashes"]) != "["+hashA+" "+hashB+"]" {
				t.Errorf("%s %s: %v", shell, version, token)
			}
			info, err := os.Stat(filepath.Join(dir, "run/weir-kubeadm.yml"))
			if err != nil || info.Mode().Perm()&0o077 != 0 {
				t.Errorf("others may read the token: %v %v", info.Mode(), err)
			}
			if m.fetched != 2 {
				t.Errorf("%d fetches", m.fetched)
			}
		}
	}
}

// TestIgnitionFetchingGoesWrong checks that a machine without a sound answer does not
// join, says why, and prints nothing of the answer.
func TestIgnitionFetchingGoesWrong(t *testing.T) {
	shell := shells(t)[0]
	for name, tc := range map[string]struct {
		value, say string
		status     int
	}{
		"denied":          {"canary", "needs ssm:GetParameter on parameter /weir/prod/demo/default/web", http.StatusBadRequest},
		"nothing":         {"", "holds no join token", http.StatusOK},
		"the token alone": {"canary.0123", "holds no join token", http.StatusOK},
		"a command":       {"canary $(id) x", "holds no join token", http.StatusOK},
		"an escape":       {`canary\" x:1 y`, "holds no join token", http.StatusOK},
	} {
		m := newMachine(t, tc.value)
		m.status = tc.status
		dir := m.disk(shell, "2.3")
		m.write(filepath.Join(dir, "joins"), "")
		out, ok := m.boot(shell, dir)
		if _, err := os.Stat(filepath.Join(dir, "joined")); ok || err == nil || !strings.Contains(out, tc.say) || strings.Contains(out, "canary") {
			t.Errorf("%s: %v %v %s", name, ok, err, out)
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
