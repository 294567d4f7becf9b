package forge_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/status/forge"
)

// kindsElsewhere are the files outside this package that may name a kind of forge.
var kindsElsewhere = map[string]string{
	"cmd/weir/output.go": "github is a format of findings, for GitHub Actions",
}

// TestNoOtherCodeKnowsKinds searches the tree: code outside this package reads a Profile and
// names no kind of forge, neither as a constant of this package nor as a text. Packages that
// only support tests, such as giteatest, may.
func TestNoOtherCodeKnowsKinds(t *testing.T) {
	root := filepath.Join("..", "..")
	files := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		if d.IsDir() && name != "." && (name == "status/forge" || d.Name() == "testdata" || strings.HasSuffix(d.Name(), "test") || strings.HasPrefix(d.Name(), ".")) {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || kindsElsewhere[name] != "" {
			return nil
		}
		files++
		for _, found := range kindsIn(t, path) {
			t.Errorf("%s names the kind of forge %s: read what it needs from forge.Profile", name, found)
		}
		return nil
	})
	if err != nil || files < 500 {
		t.Errorf("%d files were searched: %v", files, err)
	}
}

// kindsIn lists the kinds of forges that a file names.
func kindsIn(t *testing.T, path string) (found []string) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	constants := []string{"GitHub", "Gitea", "Forgejo", "GitLab", "Generic"}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			text, err := strconv.Unquote(n.Value)
			if err == nil && n.Kind == token.STRING && slices.Contains(forge.Kinds(), text) && text != string(forge.Generic) {
				found = append(found, text)
			}
		case *ast.SelectorExpr:
			if in, ok := n.X.(*ast.Ident); ok && in.Name == "forge" && slices.Contains(constants, n.Sel.Name) {
				found = append(found, n.Sel.Name)
			}
		}
		return true
	})
	return found
}
