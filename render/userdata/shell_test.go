package userdata_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/render/userdata"
)

// hostile is text that tries to leave the word of a shell that it is put in.
func hostile() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringMatching(`[ -~\n\t]{0,30}`),
		rapid.SampledFrom([]string{"'", `"`, `\`, "'; touch pwned; '", "$(touch pwned)", "`touch pwned`", "EOF\ntouch pwned\nEOF", "x\ntouch pwned\n", "a b", "--other", "-n", "*", "~", "#x", "!x", "a'b'c", "\\'", "|| touch pwned", "&touch pwned&", "<x", ">pwned"}),
	).Filter(func(s string) bool { return s != "" })
}

// TestNoValueLeavesItsWord runs the join command of an EKSConfig in a real shell,
// with a program in place of the image's script that writes its arguments.
func TestNoValueLeavesItsWord(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed, so no shell is asked")
	}
	dir := t.TempDir()
	script := filepath.Join(dir, "join")
	if err := os.WriteFile(script, []byte("#!"+bash+"\nprintf '%s\\0' \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		values := map[string]string{}
		draw := func(option string) string {
			values[option] = hostile().Draw(rt, option)
			return values[option]
		}
		docker, args := draw("--docker-config-json"), map[string]string{"node-labels": hostile().Draw(rt, "label"), "v": "2"}
		text := userdata.EKS{
			ClusterName: draw(""), Command: script, ContainerRuntime: draw("--container-runtime"), ServiceIPv6CIDR: draw("--service-ipv6-cidr"),
			PauseContainerAccount: draw("--pause-container-account"), PauseContainerVersion: draw("--pause-container-version"),
			DNSClusterIP: draw("--dns-cluster-ip"), DockerConfigJSON: &docker, KubeletExtraArgs: args,
		}.Text()
		commands := parse(rt, text).RunCmd
		if len(commands) != 1 {
			rt.Fatalf("%d commands, want 1", len(commands))
		}
		check := exec.CommandContext(t.Context(), bash, "-n", "-c", commands[0])
		if out, err := check.CombinedOutput(); err != nil {
			rt.Fatalf("bash does not parse it: %v\n%s\n%s", err, out, commands[0])
		}
		run := exec.CommandContext(t.Context(), bash, "-c", commands[0])
		run.Dir = dir
		out, err := run.Output()
		if err != nil {
			rt.Fatalf("%v\n%s", err, commands[0])
		}
		want := []string{values[""], "--kubelet-extra-args", "--node-labels=" + args["node-labels"] + " --v=2"}
		for _, option := range []string{"--container-runtime", "--service-ipv6-cidr", "--pause-container-account", "--pause-container-version", "--dns-cluster-ip", "--docker-config-json"} {
			want = append(want, option, values[option])
		}
		got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
		if d := cmp.Diff(want, got); d != "" {
			rt.Fatalf("(-want +got):\n%s\n%s", d, commands[0])
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			rt.Fatalf("the command left files behind: %v %v", entries, err)
		}
	})
}

// TestScriptsParse asks a real shell whether the scripts around the commands of
// the user are sound.
func TestScriptsParse(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed, so no shell is asked")
	}
	commands := []string{"echo 'a b'", "cat <<EOF > /tmp/x\nhi\nEOF", "if true; then\n  echo x\nfi\n"}
	verbosity := int32(5)
	ignition := ignitionOf(t, userdata.Kubeadm{PreCommands: commands, PostCommands: commands, Verbosity: &verbosity, Join: userdata.Join{Minor: 31}}, userdata.Ignition{})
	mime, err := userdata.Nodeadm{ClusterName: "c", PreCommands: commands}.Text()
	if err != nil {
		t.Fatal(err)
	}
	for name, script := range map[string]string{"Ignition": ignition.content(t, "/etc/kubeadm.sh"), "nodeadm": mimeParts(t, mime)[0].body} {
		if !strings.HasPrefix(script, "#!/bin/bash\n") {
			t.Errorf("%s begins with %.20q", name, script)
		}
		if out, err := exec.CommandContext(t.Context(), bash, "-n", "-c", script).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s\n%s", name, err, out, script)
		}
	}
}
