package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/ports"
)

// docPatience is how long one command may take, and how long it is tried again.
var docPatience = flag.Duration("patience", 3*time.Minute, "how long a documented command may take")

const docEnd = "\x01end "

// docFunctions are shell functions for the sandbox comments of pages. wait_for_demo waits until the pools of
// a demo that runs in the background have converged; it prints what the demo printed if they do not.
const docFunctions = `wait_for_demo() {
	for _ in $(seq 1500); do
		grep -q 'All 5 pools are running' demo.out && return
		kill -0 $! || break
		sleep 0.1
	done
	cat demo.out demo.err
	return 1
}
`

// docShell is a shell in a directory and with a home of its own, in which the
// commands of one page run one after the other.
type docShell struct {
	in    io.Writer
	lines chan string
}

func newDocShell(t *testing.T) *docShell {
	t.Helper()
	for _, program := range []string{"bash", "git"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
	root, err := filepath.Abs(docsRoot)
	if err != nil {
		t.Fatal(err)
	}
	home, work := t.TempDir(), t.TempDir()
	page, err := ports.Address()
	if err != nil {
		t.Fatal(err)
	}
	aws, err := ports.Address()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", "--noprofile", "--norc")
	cmd.Dir = work
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home, "LANG=C.UTF-8", "TERM=dumb", "SOURCES=" + root,
		"PAGE_ADDRESS=" + page, "AWS_ADDRESS=" + aws, "AWS_EC2_METADATA_DISABLED=true", "AWS_PAGER=",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=reader", "GIT_AUTHOR_EMAIL=reader@example.com",
		"GIT_COMMITTER_NAME=reader", "GIT_COMMITTER_EMAIL=reader@example.com",
	}
	// The daemons that a page starts are ended with the shell.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = w, w
	// Every process of the page inherits the end of this, whatever it does with its output.
	alive, held, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.ExtraFiles = []*os.File{held}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = w.Close(), held.Close()
	if _, err := io.WriteString(in, docFunctions); err != nil {
		t.Fatal(err)
	}
	s := &docShell{in: in, lines: make(chan string, 1024)}
	go func() {
		defer close(s.lines)
		sc := bufio.NewScanner(out)
		sc.Buffer(nil, 1<<24)
		for sc.Scan() {
			s.lines <- sc.Text()
		}
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		_ = in.Close()
		done := time.AfterFunc(*docPatience, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
		for range s.lines { // so that nobody waits for a reader
		}
		_, _ = io.Copy(io.Discard, alive) // until every process has gone
		done.Stop()
		_ = cmd.Wait()
		_, _ = out.Close(), alive.Close()
	})
	return s
}

// do runs the commands of a block and compares what they print.
func (s *docShell) do(t *testing.T, page string, b docBlock) {
	t.Helper()
	if !b.run {
		return
	}
	if b.needs != "" {
		present := false
		t.Run(fmt.Sprintf("line %d", b.line), func(t *testing.T) {
			if _, err := exec.LookPath(b.needs); err != nil {
				t.Skipf("%s is not installed", b.needs)
			}
			present = true
		})
		if !present {
			return
		}
	}
	for i, c := range b.commands {
		exit := 0
		if i == len(b.commands)-1 {
			exit = b.exit
		}
		deadline := time.Now().Add(*docPatience)
		for {
			got, code, err := s.command(c.text)
			if err == nil {
				err = compareShown(c.shown, got)
			}
			if err == nil && code != exit {
				err = fmt.Errorf("exit code %d, want %d", code, exit)
			}
			if err == nil {
				break
			}
			if b.retry && time.Now().Before(deadline) {
				time.Sleep(200 * time.Millisecond)
				continue
			}
			t.Fatalf("%s:%d: $ %s\n%v\nit printed:\n%s", page, c.line, c.text, err, strings.Join(got, "\n"))
		}
	}
}

var documentedAddresses = strings.NewReplacer("127.0.0.1:8344", "${PAGE_ADDRESS}", "127.0.0.1:8345", "${AWS_ADDRESS}")

// command runs one command line in the shell itself, so that cd and export hold
// for the next.
func (s *docShell) command(text string) (printed []string, code int, err error) {
	_, err = fmt.Fprintf(s.in, "{\n%s\n} </dev/null\nprintf '\\n%s%%d\\n' $?\n", documentedAddresses.Replace(text), docEnd)
	if err != nil {
		return nil, 0, err
	}
	patience := time.After(*docPatience)
	for {
		select {
		case line, open := <-s.lines:
			if !open {
				return printed, 0, fmt.Errorf("the shell has ended")
			}
			if end, ok := strings.CutPrefix(line, docEnd); ok {
				code, err = strconv.Atoi(end)
				return printed, code, err
			}
			printed = append(printed, line)
		case <-patience:
			return printed, 0, fmt.Errorf("it did not end within %s", *docPatience)
		}
	}
}

// compareShown holds what a command printed against what a page shows of it.
// Empty lines and the width of gaps do not count.
func compareShown(shown, printed []string) error {
	if shown == nil {
		return nil
	}
	var pattern strings.Builder
	for _, line := range shown {
		switch line = collapse(line); line {
		case "":
		case "…":
			pattern.WriteString("(?:.*\n)*?")
		default:
			line = strings.ReplaceAll(strings.ReplaceAll(line, "127.0.0.1:8344", "…"), "127.0.0.1:8345", "…")
			pattern.WriteString(anyText.Replace(regexp.QuoteMeta(line + "\n")))
		}
	}
	var text strings.Builder
	for _, line := range printed {
		if line = collapse(line); line != "" {
			text.WriteString(line + "\n")
		}
	}
	if regexp.MustCompile(`\A` + pattern.String() + `\z`).MatchString(text.String()) {
		return nil
	}
	return fmt.Errorf("the page shows:\n%s", strings.Join(shown, "\n"))
}

// anyText makes … stand for any text. Where gaps are around it, it may be none.
var anyText = strings.NewReplacer(" … ", " (?:.* )?", " …\n", "(?: .*)?\n", "… ", "(?:.* )?", "…", ".*")

func collapse(line string) string { return strings.Join(strings.Fields(line), " ") }

func TestShownOutput(t *testing.T) {
	printed := []string{"TARGET   POOL", "prod     web", "", "dev      web   12s"}
	for _, c := range []struct {
		shown []string
		same  bool
	}{
		{nil, true},
		{[]string{"TARGET POOL", "prod web", "dev web 12s"}, true},
		{[]string{"TARGET  POOL", "…", "dev … 12s"}, true},
		{[]string{"…", "dev … 12s"}, true},
		{[]string{"… TARGET … POOL …", "…d web", "… 12s"}, true},
		{[]string{"TARGET POOL", "…"}, true},
		{[]string{"TARGET POOL"}, false},
		{[]string{"prod web", "dev web 12s"}, false},
		{[]string{"TARGET POOL", "prod web", "dev web 13s"}, false},
		{[]string{"…", "prod", "…"}, false},
	} {
		if err := compareShown(c.shown, printed); (err == nil) != c.same {
			t.Errorf("%q: %v, want the same: %t", c.shown, err, c.same)
		}
	}
}

func TestReadBlock(t *testing.T) {
	b, err := readBlock("console run retry exit=2 needs=aws", 1, []string{`$ a \`, "  b", "out", "$ cat >f <<EOF", "> x", "> EOF"})
	if err != nil {
		t.Fatal(err)
	}
	if !b.run || !b.retry || b.exit != 2 || b.needs != "aws" || len(b.commands) != 2 ||
		b.commands[0].text != "a \\\n  b" || b.commands[0].shown[0] != "out" || b.commands[1].text != "cat >f <<EOF\nx\nEOF" {
		t.Errorf("%+v", b)
	}
	for _, info := range []string{"", "console", "sh", "console skip:", "console run twice", "sh run exit=x"} {
		if _, err := readBlock(info, 1, []string{"$ a"}); err == nil {
			t.Errorf("%q is taken", info)
		}
	}
}
