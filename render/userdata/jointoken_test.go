package userdata_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/weir-gitops/weir/render/userdata"
)

const (
	joinToken = "abcdef.0123456789abcdef"
	hashA     = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	hashB     = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

// fetching renders a worker that fetches its token.
func fetching(t *testing.T, f userdata.FetchedToken, join userdata.Join) string {
	t.Helper()
	f.Parameter, f.Region = "/weir/prod/demo/default/web", "eu-west-1"
	join.Minor, join.Fetched, join.NodeName = 31, &f, "weir-join-token"
	text, err := userdata.Kubeadm{Join: join}.Text()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// boot runs the fetching script of user data with a program in place of the AWS
// CLI, and returns kubeadm's configuration and what the script printed.
func boot(t *testing.T, shell, text, cli string) (config map[string]any, output string, ok bool) {
	t.Helper()
	dir := t.TempDir()
	var doc struct {
		Files []struct{ Path, Content string } `yaml:"write_files"`
	}
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	at := map[string]string{}
	for _, f := range doc.Files {
		at[f.Path] = filepath.Join(dir, filepath.Base(f.Path))
	}
	for _, f := range doc.Files {
		content := f.Content
		for from, to := range at {
			content = strings.ReplaceAll(content, from, to)
		}
		if err := os.WriteFile(at[f.Path], []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	programs := map[string]string{"sleep": "exit 0"}
	if cli != "" {
		programs["aws"] = cli
	}
	for name, script := range programs {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!"+shell+"\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	sed, err := exec.LookPath("sed")
	if err != nil {
		t.Skip("sed is not installed")
	}
	if err := os.Symlink(sed, filepath.Join(bin, "sed")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), shell, at["/run/kubeadm/weir-join-token.sh"])
	cmd.Env = []string{"PATH=" + bin}
	out, err := cmd.CombinedOutput()
	written, readErr := os.ReadFile(at["/run/kubeadm/kubeadm-join-config.yaml"])
	if readErr != nil {
		t.Fatal(readErr)
	}
	if err := yaml.Unmarshal(written, &config); err != nil {
		t.Fatalf("%v\n%s", err, written)
	}
	return config, string(out), err == nil
}

func shells(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, name := range []string{"sh", "bash", "dash"} {
		if path, err := exec.LookPath(name); err == nil {
			out = append(out, path)
		}
	}
	if len(out) == 0 {
		t.Skip("no shell is installed")
	}
	return out
}

func TestNodeFetchesItsToken(t *testing.T) {
	answer := "[ \"$*\" = 'ssm get-parameter --region eu-west-1 --name /weir/prod/demo/default/web --with-decryption --query Parameter.Value --output text' ] || exit 9\necho '" +
		joinToken + " api.example.org:6443 " + hashA + " " + hashB + "'"
	for _, shell := range shells(t) {
		for name, tc := range map[string]struct {
			fetched userdata.FetchedToken
			join    userdata.Join
			server  string
			hashes  []any
		}{
			"all of it":   {userdata.FetchedToken{Endpoint: true, CA: true}, userdata.Join{}, "api.example.org:6443", []any{hashA, hashB}},
			"the token":   {userdata.FetchedToken{}, userdata.Join{APIServerEndpoint: "10.0.0.1:6443", CACertHashes: []string{hashB}}, "10.0.0.1:6443", []any{hashB}},
			"CA unwanted": {userdata.FetchedToken{Endpoint: true}, userdata.Join{UnsafeSkipCA: true}, "api.example.org:6443", nil},
		} {
			config, out, ok := boot(t, shell, fetching(t, tc.fetched, tc.join), answer)
			if !ok || out != "" {
				t.Fatalf("%s %s: %v %s", shell, name, ok, out)
			}
			token := config["discovery"].(map[string]any)["bootstrapToken"].(map[string]any)
			hashes, _ := token["caCertHashes"].([]any)
			if token["token"] != joinToken || token["apiServerEndpoint"] != tc.server || len(hashes) != len(tc.hashes) {
				t.Errorf("%s %s: %v", shell, name, token)
			}
			for i, h := range hashes {
				if h != tc.hashes[i] {
					t.Errorf("hash %v, want %v", h, tc.hashes[i])
				}
			}
			if node := config["nodeRegistration"].(map[string]any)["name"]; node != "weir-join-token" {
				t.Errorf("the node's name became %v", node)
			}
		}
	}
}

// TestFetchingGoesWrong checks that a node without a sound answer does not join,
// says why, and prints nothing of the answer.
func TestFetchingGoesWrong(t *testing.T) {
	for _, shell := range shells(t) {
		for name, tc := range map[string]struct{ cli, say string }{
			"no CLI":          {"", "no AWS CLI"},
			"denied":          {"echo AccessDenied >&2; exit 254", "needs ssm:GetParameter on parameter /weir/prod/demo/default/web"},
			"nothing":         {"exit 0", "holds no join token"},
			"the token alone": {"echo canary.0123", "holds no join token"},
			"a command":       {"echo 'canary $(id) x'", "holds no join token"},
			"a sed command":   {"echo 'canary|;1d;s|a x:6443 y'", "holds no join token"},
			"two lines":       {"printf 'canary x:1 y\\nrm z\\n'", "holds no join token"},
			"quotes":          {`echo 'canary" x:1 y'`, "holds no join token"},
		} {
			config, out, ok := boot(t, shell, fetching(t, userdata.FetchedToken{Endpoint: true, CA: true}, userdata.Join{}), tc.cli)
			if ok || !strings.Contains(out, tc.say) || strings.Contains(out, "canary") {
				t.Errorf("%s %s: %v %s", shell, name, ok, out)
			}
			if token := config["discovery"].(map[string]any)["bootstrapToken"].(map[string]any)["token"]; token != "weir-join-token" {
				t.Errorf("%s %s: the token became %v", shell, name, token)
			}
		}
	}
	config, out, ok := boot(t, shells(t)[0], fetching(t, userdata.FetchedToken{Endpoint: true, CA: true}, userdata.Join{}), "echo '"+joinToken+" [fd00::1]:6443 "+hashA+"'")
	if server := config["discovery"].(map[string]any)["bootstrapToken"].(map[string]any)["apiServerEndpoint"]; !ok || server != "[fd00::1]:6443" {
		t.Errorf("%v %s", server, out)
	}
}

// TestFetchingKeepsFromJinja checks that cloud-init's templates leave the script
// as it is, and that kubeadm runs only after it.
func TestFetchingKeepsFromJinja(t *testing.T) {
	text := fetching(t, userdata.FetchedToken{Endpoint: true, CA: true}, userdata.Join{})
	for _, mark := range []string{"{{", "{%", "{#"} {
		if strings.Contains(text, mark) {
			t.Errorf("the user data holds %s", mark)
		}
	}
	if !strings.Contains(text, "sh /run/kubeadm/weir-join-token.sh && kubeadm join --config /run/kubeadm/kubeadm-join-config.yaml && echo success") {
		t.Errorf("the commands are\n%s", text)
	}
}
