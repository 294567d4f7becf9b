package source_test

import (
	"fmt"
	"testing"

	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/sourcetest"
)

// tenThousand writes 10,000 files into 1,000 directories.
func tenThousand(repo *sourcetest.Repo) {
	files := map[string]string{}
	for i := range 10_000 {
		files[fmt.Sprintf("clusters/c%02d/p%02d/f%d.yaml", i/1000, i/10%100, i%10)] = fmt.Sprintf("kind: AWSMachinePool\nmetadata: {name: p%d}\nspec: {minSize: %d}\n", i, i%7)
	}
	repo.Write(files)
	repo.Commit("ten thousand")
}

// BenchmarkFetchOneCommit is a commit that changes one file of 10,000: from the
// call to a snapshot whose changed file was read.
func BenchmarkFetchOneCommit(b *testing.B) {
	repo := sourcetest.New(b)
	fetchOneCommit(b, repo, source.Config{URL: repo.URL()})
}

// BenchmarkFetchOneCommitSSH is the same over SSH, with a login each time.
func BenchmarkFetchOneCommitSSH(b *testing.B) {
	r := newSSHRepo(b)
	fetchOneCommit(b, r.Repo, r.config(b))
}

func fetchOneCommit(b *testing.B, repo *sourcetest.Repo, cfg source.Config) {
	tenThousand(repo)
	g := open(b, cfg, source.Options{})
	latest(b, g)
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		if i%150 == 149 { // Not the benchmark of making a mirror again.
			cfg.Dir = b.TempDir()
			g = open(b, cfg, source.Options{})
			latest(b, g)
		}
		text := fmt.Sprint("changed: ", i)
		repo.Write(map[string]string{"clusters/c05/p50/f5.yaml": text})
		repo.Commit("change")
		b.StartTimer()
		data, err := latest(b, g).Tree.ReadFile("clusters/c05/p50/f5.yaml")
		if err != nil || string(data) != text {
			b.Fatal(string(data), err)
		}
	}
}

// BenchmarkFetchLocal is the same for a repository on this machine.
func BenchmarkFetchLocal(b *testing.B) {
	repo := sourcetest.New(b)
	tenThousand(repo)
	g := open(b, source.Config{URL: repo.Dir()}, source.Options{})
	latest(b, g)
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		repo.Write(map[string]string{"clusters/c05/p50/f5.yaml": fmt.Sprint("changed: ", i)})
		repo.Commit("change")
		b.StartTimer()
		if _, err := latest(b, g).Tree.ReadFile("clusters/c05/p50/f5.yaml"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkUnchanged is a poll that finds nothing new.
func BenchmarkUnchanged(b *testing.B) {
	repo := sourcetest.New(b)
	tenThousand(repo)
	g := open(b, source.Config{URL: repo.URL()}, source.Options{})
	latest(b, g)
	for b.Loop() {
		latest(b, g)
	}
}

// BenchmarkFirstClone is everything from nothing.
func BenchmarkFirstClone(b *testing.B) {
	repo := sourcetest.New(b)
	tenThousand(repo)
	for b.Loop() {
		latest(b, open(b, source.Config{URL: repo.URL()}, source.Options{}))
	}
}

// BenchmarkReadAll reads 10,000 files, cold and then cached.
func BenchmarkReadAll(b *testing.B) {
	repo := sourcetest.New(b)
	tenThousand(repo)
	dir := b.TempDir()
	latest(b, open(b, source.Config{URL: repo.URL(), Dir: dir}, source.Options{}))
	b.Run("cold", func(b *testing.B) {
		for b.Loop() {
			s, ok := open(b, source.Config{URL: repo.URL(), Dir: dir}, source.Options{}).Last()
			if !ok || len(files(b, s.Tree)) != 10_000 {
				b.Fatal(ok)
			}
		}
	})
	b.Run("cached", func(b *testing.B) {
		s, _ := open(b, source.Config{URL: repo.URL(), Dir: dir}, source.Options{}).Last()
		files(b, s.Tree)
		for b.Loop() {
			files(b, s.Tree)
		}
	})
}

// BenchmarkPull is a pull request that changes one file of 10,000, ten commits
// behind: from the call to the merged tree's changed file.
func BenchmarkPull(b *testing.B) {
	repo := sourcetest.New(b)
	benchmarkPull(b, repo, source.Config{URL: repo.URL()})
}

// BenchmarkPullLocal is the same without a network.
func BenchmarkPullLocal(b *testing.B) {
	repo := sourcetest.New(b)
	benchmarkPull(b, repo, source.Config{URL: repo.Dir()})
}

func benchmarkPull(b *testing.B, repo *sourcetest.Repo, cfg source.Config) {
	b.ReportAllocs()
	tenThousand(repo)
	r := &fork{Repo: repo, base: repo.Tip("main")}
	from := r.base
	for i := range 10 {
		repo.Write(map[string]string{fmt.Sprintf("clusters/c05/p50/f%d.yaml", i%5): fmt.Sprint("base ", i)})
		r.base = repo.Commit("main goes on")
	}
	g := open(b, cfg, source.Options{})
	latest(b, g)
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		if i%150 == 149 { // Not the benchmark of making a mirror again.
			cfg.Dir = b.TempDir()
			g = open(b, cfg, source.Options{})
			latest(b, g)
		}
		text := fmt.Sprint("changed: ", i)
		p := r.push(1, from, "clusters/c05/p50/f7.yaml", text)
		b.StartTimer()
		data, err := pull(b, g, p).Snapshot.Tree.ReadFile("clusters/c05/p50/f7.yaml")
		if err != nil || string(data) != text {
			b.Fatal(string(data), err)
		}
	}
}
