package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// unit reads a unit: the values of each key of a section, in order.
func unit(t *testing.T, name string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	out, section := map[string][]string{}, ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch key, value, ok := strings.Cut(line, "="); {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "["):
			section = strings.Trim(line, "[]")
		case ok:
			out[section+"."+key] = append(out[section+"."+key], value)
		default:
			t.Errorf("%s: %q is no setting", name, line)
		}
	}
	return out
}

// TestUnit: what the unit promises stands in it, and fits what weir does.
func TestUnit(t *testing.T) {
	u := unit(t, "systemd/weir.service")
	for key, want := range map[string]string{
		"Service.Type": "notify", "Service.NotifyAccess": "main", "Service.DynamicUser": "yes", "Service.StateDirectory": "weir", "Service.StateDirectoryMode": "0700",
		"Service.LoadCredential": "weir:/etc/weir/credentials", "Service.ExecReload": "/bin/kill -HUP $MAINPID", "Service.CapabilityBoundingSet": "",
		"Service.NoNewPrivileges": "yes", "Service.ProtectSystem": "strict", "Service.MemoryDenyWriteExecute": "yes", "Service.Restart": "on-failure",
		"Install.WantedBy": "multi-user.target",
	} {
		if got := u[key]; !slices.Equal(got, []string{want}) {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if run := u["Service.ExecStart"]; len(run) != 1 || run[0] != "/usr/local/bin/weir run --config /etc/weir/weir.yaml --log-format json" {
		t.Errorf("it runs %q", run)
	}
	// weir takes 25 s to stop at most, and shows a sign of life each 10 s at least.
	seconds := func(key string) time.Duration {
		d, err := time.ParseDuration(strings.Replace(u["Service."+key][0], "min", "m", 1))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	// It asks for a minute for each step of its start; systemd gives the first one.
	if start := seconds("TimeoutStartSec"); start < time.Minute {
		t.Errorf("it has %s to start", start)
	}
	if stop, dog := seconds("TimeoutStopSec"), seconds("WatchdogSec"); stop <= 25*time.Second || dog < 30*time.Second {
		t.Errorf("it has %s to stop and %s for a sign of life", stop, dog)
	}
}

// TestUnitAsSystemdSeesIt: systemd reads it without a complaint, and finds little that
// weir could do beyond its work.
func TestUnitAsSystemdSeesIt(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	if out, err := exec.CommandContext(t.Context(), analyze, "--version").Output(); err != nil || version(string(out)) < 250 {
		t.Skipf("systemd 250 or newer is needed: %.20q, %v", out, err)
	}
	text, err := os.ReadFile("systemd/weir.service")
	if err != nil {
		t.Fatal(err)
	}
	// It has to find the program; any will do.
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "weir.service")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "/usr/local/bin/weir", self)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", file).CombinedOutput(); err != nil || complains(string(out)) {
		t.Errorf("verify: %v\n%s", err, out)
	}
	// So it does with the drop-in for several weirs.
	dropIn, err := os.ReadFile("systemd/weir.service.d/several.conf")
	if err != nil {
		t.Fatal(err)
	}
	verifies := func(text string) bool {
		t.Helper()
		if err := os.MkdirAll(file+".d", 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(file+".d", "several.conf"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", file).CombinedOutput()
		return err == nil && !strings.Contains(string(out), "several.conf") && !complains(string(out))
	}
	if verifies(strings.Replace(string(dropIn), "Restart=", "Restrt=", 1)) {
		t.Error("a misspelt setting of the drop-in passes")
	}
	if !verifies(string(dropIn)) {
		t.Error("systemd complains of the drop-in")
	}
	// The scale goes from 0 to 10; a service without any confinement has 9.6. The
	// points that are left are for speaking to the network.
	out, err := exec.CommandContext(t.Context(), analyze, "security", "--no-pager", "--offline=true", "--threshold=15", file).CombinedOutput()
	if err != nil {
		t.Errorf("security: %v\n%s", err, out)
	}
	if !strings.Contains(string(out), "Overall exposure level") {
		t.Errorf("security says %s", out)
	}
	// The check finds a fault.
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "ProtectSystem=strict", "ProtectSystm=strict")), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", file).CombinedOutput(); err == nil && !complains(string(out)) {
		t.Errorf("a misspelt setting passes: %s", out)
	}
}

// complains reports whether systemd says something of the unit, and not of others
// that are on the machine.
func complains(out string) bool {
	return slices.ContainsFunc(strings.Split(out, "\n"), func(line string) bool { return strings.Contains(line, "weir.service") })
}

// version is the number in "systemd 252 (252.39-1~deb12u2)".
func version(text string) int {
	fields := strings.Fields(text)
	if len(fields) < 2 {
		return 0
	}
	n, err := strconv.Atoi(fields[1])
	if err != nil {
		return 0
	}
	return n
}
