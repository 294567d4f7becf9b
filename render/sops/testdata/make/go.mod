// A module of its own: nothing of the SOPS library reaches weir's go.sum.
// Run by hand, from this directory: go mod tidy && go run . ..
module github.com/weir-gitops/weir/render/sops/testdata/make

go 1.26.0

require (
	filippo.io/age v1.3.1
	github.com/getsops/sops/v3 v3.13.3
)
