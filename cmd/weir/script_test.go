package main

import (
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weir-gitops/weir/cmd/weir/internal/ports"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
	_ "github.com/weir-gitops/weir/reconciler/cloudtest/checked"
	"github.com/weir-gitops/weir/render/sops/sopstest"
	"github.com/weir-gitops/weir/source/sourcetest"
)

// TestMain runs three times as many tests beside each other as there are processors: most
// wait for daemons.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", strconv.Itoa(3*runtime.GOMAXPROCS(0))); err != nil { // before the command line is read
		panic(err)
	}
	testscript.Main(m, map[string]func(){"weir": main, "skewed-weir": skewedMain})
}

// TestScripts runs the command lines in testdata/script on the real main. Each
// has an embedded AWS of its own at $AWS, the fixture of testdata/fleet in its
// directory, and these commands beside testscript's:
//
//	aws ACTION [KEY=VALUE…]   one call to AWS, past weir
//	aws METHOD /PATH JSON     the same to EKS
//	writes N                  AWS was written to N times since the start or reset
//	calls FILE                write which calls AWS got since then, how often, to the file
//	reset                     forget the calls so far
//	seed FILE                 add what a seed holds to AWS
//	repo commit DIR MESSAGE   make DIR the content of the branch main, at $REPO
//	repo delete-branch NAME, repo down, repo up, repo password USER PASSWORD
//	expand FILE                put the environment's values for $NAME in the file
//	signal NAME DAEMON         send a signal to the process in DAEMON.pid
//	await SECONDS REGEXP FILE|URL   wait until the text matches
//	certificate CERT KEY CA   make a certificate for this machine, its key, and its authority
//	sops KEYFILE FILE NAME KEY VALUE   make a key, and a Secret that it opens
//	engine dynamodb|etcd      start an engine that daemons share, with its section in $ENGINE
//	engine stop, engine start  end it, and start it again with what it held
//	notify FILE               be the service manager that is told, and write that to FILE
//
// and the conditions [terraform]: there is terraform, and its AWS provider below
// WEIR_TEST_TERRAFORM_MIRROR, as terraform providers mirror writes it; and [awscli]: there
// is the AWS CLI, and WEIR_TEST_AWSCLI is set, as make contract does.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Condition: func(name string) (bool, error) {
			switch name {
			case "terraform":
				_, err := exec.LookPath("terraform")
				return err == nil && os.Getenv("WEIR_TEST_TERRAFORM_MIRROR") != "", nil
			case "awscli":
				_, err := exec.LookPath("aws")
				return err == nil && os.Getenv("WEIR_TEST_AWSCLI") != "", nil
			}
			return false, fmt.Errorf("unknown condition %s", name)
		},
		Setup: func(e *testscript.Env) error { return setupScript(t, e) },
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"sops":   func(ts *testscript.TestScript, _ bool, args []string) { cmdSOPS(t, ts, args) },
			"engine": func(ts *testscript.TestScript, _ bool, args []string) { cmdEngine(t, ts, args) },
			"aws":    cmdAWS, "writes": cmdWrites, "calls": cmdCalls, "reset": cmdReset, "seed": cmdSeed, "repo": cmdRepo, "await": cmdAwait, "expand": cmdExpand, "signal": cmdSignal, "notify": cmdNotify, "certificate": cmdCertificate,
		},
	})
}

type scriptKey string

const (
	emulatorKey scriptKey = "emulator"
	repoKey     scriptKey = "repository"
)

func setupScript(t *testing.T, e *testscript.Env) error {
	emu, err := awsemu.New(awsemu.Options{Timings: quickTimings()})
	if err != nil {
		return err
	}
	watched := &watcher{t: t, emu: emu}
	server := httptest.NewServer(watched)
	e.Defer(func() {
		server.Close()
		fits(t, filepath.Base(e.WorkDir), watched.take())
	})
	e.Values[emulatorKey], e.Values[engineKey] = emu, new(any)
	repo := sourcetest.New(t)
	e.Values[repoKey] = repo
	e.Setenv("REPO", repo.URL())
	e.Setenv("REPODIR", repo.Dir())
	e.Setenv("AWS", server.URL)
	address, err := ports.Address()
	if err != nil {
		return err
	}
	e.Setenv("LISTEN", address)
	e.Setenv("HOME", e.WorkDir)
	e.Setenv("TERRAFORM_MIRROR", os.Getenv("WEIR_TEST_TERRAFORM_MIRROR"))
	for i, name := range []string{"OPS", "READER", "OTHER"} { // tokens
		e.Setenv(name, strings.Repeat(string(rune('a'+i)), 40))
	}
	e.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	return os.CopyFS(filepath.Join(e.WorkDir, "fleet"), os.DirFS("testdata/fleet"))
}

// quickTimings let scripts wait as little as possible.
func quickTimings() world.Timings {
	t := world.Fast()
	t.InstancePending, t.InstanceShutdown, t.RefreshBatch = 50*time.Millisecond, 50*time.Millisecond, 50*time.Millisecond
	t.NodegroupCreate, t.NodegroupUpdate, t.NodegroupDelete = 100*time.Millisecond, 100*time.Millisecond, 100*time.Millisecond
	return t
}

func cmdAWS(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 0 {
		ts.Fatalf("usage: aws ACTION [KEY=VALUE…]")
	}
	service, version := "autoscaling", "2011-01-01"
	if strings.Contains(args[0], "LaunchTemplate") || strings.Contains(args[0], "Instances") || strings.Contains(args[0], "KeyPair") || strings.Contains(args[0], "Vpc") || strings.HasSuffix(args[0], "Tags") && args[0] != "CreateOrUpdateTags" {
		service, version = "ec2", "2016-11-15"
	}
	if len(args) == 3 && strings.HasPrefix(args[1], "/") {
		askEKS(ts, neg, args)
		return
	}
	form := url.Values{"Action": {args[0]}, "Version": {version}}
	for _, a := range args[1:] {
		key, value, _ := strings.Cut(a, "=")
		form.Set(key, value)
	}
	req, err := http.NewRequest(http.MethodPost, ts.Getenv("AWS"), strings.NewReader(form.Encode()))
	ts.Check(err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set(pastWeir, "yes")
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=weir/20260101/eu-west-1/"+service+"/aws4_request, SignedHeaders=host, Signature=0")
	res, err := http.DefaultClient.Do(req)
	ts.Check(err)
	defer func() { _ = res.Body.Close() }()
	_, err = io.Copy(ts.Stdout(), res.Body)
	ts.Check(err)
	if (res.StatusCode == http.StatusOK) == neg {
		ts.Fatalf("%s: %s", args[0], res.Status)
	}
}

// askEKS is aws METHOD /PATH JSON.
func askEKS(ts *testscript.TestScript, neg bool, args []string) {
	req, err := http.NewRequest(args[0], ts.Getenv("AWS")+args[1], strings.NewReader(args[2]))
	ts.Check(err)
	req.Header.Set(pastWeir, "yes")
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=weir/20260101/eu-west-1/eks/aws4_request, SignedHeaders=host, Signature=0")
	res, err := http.DefaultClient.Do(req)
	ts.Check(err)
	defer func() { _ = res.Body.Close() }()
	_, err = io.Copy(ts.Stdout(), res.Body)
	ts.Check(err)
	if (res.StatusCode == http.StatusOK) == neg {
		ts.Fatalf("%s %s: %s", args[0], args[1], res.Status)
	}
}

func cmdWrites(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(strings.Join(args, " "))
	ts.Check(err)
	var got []string
	for _, c := range ts.Value(emulatorKey).(*awsemu.Server).Calls() {
		if c.Write {
			got = append(got, c.Service+":"+c.Operation)
		}
	}
	if len(got) != want {
		ts.Fatalf("want %d writes, got %d: %v", want, len(got), got)
	}
}

// cmdCalls writes to a file which calls AWS got, how often.
func cmdCalls(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: calls FILE")
	}
	var text strings.Builder
	counts := ts.Value(emulatorKey).(*awsemu.Server).CallCounts()
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&text, "%s %d\n", name, counts[name])
	}
	if text.Len() == 0 {
		ts.Fatalf("AWS got no call")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text.String()), 0o600))
}

func cmdSOPS(t *testing.T, ts *testscript.TestScript, args []string) {
	if len(args) != 5 {
		ts.Fatalf("usage: sops KEYFILE FILE NAME KEY VALUE")
	}
	key := sopstest.Age(t)
	identity, err := os.ReadFile(key.IdentityFile(t))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), identity, 0o600))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(sopstest.Secret(t, key, args[2], args[3], args[4])), 0o600))
}

func cmdReset(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Value(emulatorKey).(*awsemu.Server).ResetCalls()
}

func cmdSeed(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(ts.Value(emulatorKey).(*awsemu.Server).Seed(strings.NewReader(ts.ReadFile(args[0]))))
}

func cmdRepo(ts *testscript.TestScript, _ bool, args []string) {
	repo := ts.Value(repoKey).(*sourcetest.Repo)
	switch {
	case len(args) == 3 && args[0] == "commit":
		if len(strings.Fields(repo.Git("for-each-ref"))) > 0 {
			repo.Remove(strings.Fields(repo.Git("ls-tree", "-r", "--name-only", "main"))...)
		}
		files := map[string]string{}
		root := ts.MkAbs(args[1])
		ts.Check(filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			rel, err := filepath.Rel(root, name)
			if err == nil {
				files[filepath.ToSlash(rel)] = ts.ReadFile(name)
			}
			return err
		}))
		repo.Write(files)
		_, _ = fmt.Fprintln(ts.Stdout(), repo.Commit(strings.ReplaceAll(args[2], `\n`, "\n")))
	case len(args) == 2 && args[0] == "delete-branch":
		repo.DeleteBranch(args[1])
	case slices.Equal(args, []string{"down"}):
		repo.Down(true)
	case slices.Equal(args, []string{"up"}):
		repo.Down(false)
	case len(args) == 3 && args[0] == "password":
		repo.RequireAuth(args[1], args[2])
	default:
		ts.Fatalf("usage: repo commit DIR MESSAGE | delete-branch NAME | down | up | password USER PASSWORD")
	}
}

// cmdAwait waits until a file or an address has a text that matches.
func cmdAwait(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: await SECONDS REGEXP FILE|URL")
	}
	seconds, err := strconv.ParseFloat(args[0], 64)
	ts.Check(err)
	pattern, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	deadline := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	for {
		text := readAny(ts, args[2])
		if pattern.MatchString(text) != neg {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s does not match %q after %s s (negated: %t):\n%s", args[2], args[1], args[0], neg, text)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func readAny(ts *testscript.TestScript, place string) string {
	if !strings.HasPrefix(place, "http://") {
		content, err := os.ReadFile(ts.MkAbs(place))
		if err != nil {
			return err.Error()
		}
		return string(content)
	}
	res, err := http.Get(place) //nolint:gosec // the test's own daemon
	if err != nil {
		return err.Error()
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err.Error()
	}
	return string(body)
}

// cmdExpand replaces $NAME in a file by the environment's values.
func cmdExpand(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(os.Expand(ts.ReadFile(name), ts.Getenv)), 0o600))
	}
}

func cmdSignal(ts *testscript.TestScript, _ bool, args []string) {
	signals := map[string]syscall.Signal{"TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "KILL": syscall.SIGKILL}
	if len(args) != 2 || signals[args[0]] == 0 {
		ts.Fatalf("usage: signal TERM|HUP|INT|KILL DAEMON")
	}
	pid, err := strconv.Atoi(strings.TrimSpace(ts.ReadFile(args[1] + ".pid")))
	ts.Check(err)
	ts.Check(syscall.Kill(pid, signals[args[0]]))
}
