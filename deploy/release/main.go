// Command release builds what a release of weir consists of: for each platform an
// archive with the binary and its documents and a CycloneDX bill of materials, and
// the SHA-256 sums of all of them.
//
// The same commit gives the same bytes, wherever and whenever it is built with the
// same Go: paths are trimmed, version control is not asked, and every time is that
// of the commit. `make release` calls it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to be stopped
	}
}

// release is what is released, and from where.
type release struct {
	root, out       string
	version, commit string
	at              time.Time
}

// documents go into each archive beside the binary.
var documents = []string{"CHANGELOG.md", "LICENSE", "README.md"}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	root := flags.String("root", ".", "directory of the module")
	out := flags.String("out", "dist", "directory for what is built; what is in it goes")
	version := flags.String("version", "", "version, such as v1.2.3")
	commit := flags.String("commit", "", "full hash of the commit")
	epoch := flags.Int64("epoch", 0, "time of everything, in Unix seconds: the commit's, or SOURCE_DATE_EPOCH")
	platforms := flags.String("platforms", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64", "GOOS/GOARCH, separated by commas")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *version == "" || strings.ContainsAny(*version, "/ '\"\\") || *epoch <= 0 {
		return fmt.Errorf("want a -version without blanks, quotes and slashes, and an -epoch")
	}
	r := release{root: *root, out: *out, version: *version, commit: *commit, at: time.Unix(*epoch, 0).UTC()}
	if err := os.RemoveAll(r.out); err != nil {
		return fmt.Errorf("clear %s: %w", r.out, err)
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil { //nolint:gosec // what is released is for everybody
		return fmt.Errorf("make %s: %w", r.out, err)
	}
	for _, p := range slices.Sorted(slices.Values(strings.Split(*platforms, ","))) {
		goos, arch, ok := strings.Cut(p, "/")
		if !ok {
			return fmt.Errorf("platform %q: want GOOS/GOARCH", p)
		}
		fmt.Println("build", p)
		if err := r.platform(ctx, goos, arch); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	return writeSums(r.out)
}

// platform makes the archive and the bill of materials of one platform.
func (r release) platform(ctx context.Context, goos, arch string) error {
	dir, err := os.MkdirTemp("", "weir-release-")
	if err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // the system's to clean
	binary := filepath.Join(dir, "weir")
	// The commit is given to the linker, so that a build from an archive without
	// version control gives the same bytes.
	build := exec.CommandContext(ctx, "go", "build", "-tags", "kustomize_disable_go_plugin_support", "-trimpath", "-buildvcs=false", "-o", binary, //nolint:gosec // the release's own arguments
		"-ldflags", fmt.Sprintf("-s -w -buildid= -X main.version=%s -X main.commit=%s", r.version, r.commit), "./cmd/weir")
	build.Dir, build.Stderr = r.root, os.Stderr
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=-mod=readonly", "GOWORK=off", "GOEXPERIMENT=")
	if err := build.Run(); err != nil {
		return fmt.Errorf("go build: %w", err)
	}
	name := fmt.Sprintf("weir-%s-%s-%s", strings.TrimPrefix(r.version, "v"), goos, arch)
	files := []file{{name: name + "/weir", from: binary, mode: 0o755}}
	for _, d := range documents {
		files = append(files, file{name: name + "/" + d, from: filepath.Join(r.root, d), mode: 0o644})
	}
	if err := writeArchive(filepath.Join(r.out, name+".tar.gz"), files, r.at); err != nil {
		return err
	}
	return writeBOM(filepath.Join(r.out, name+".cdx.json"), binary, r)
}
