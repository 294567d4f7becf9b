// Package comments extracts the comments of types and fields from Go sources, for the descriptions in
// schemas. Tests use it and write its output to a file that the program embeds.
package comments

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Table returns the comments of struct types in the Go files of some directories. It includes types that have
// fields with the struct tag tag. For each type it has a line "Type text", and for each tagged field a line
// "Type.key text", sorted. In a text, the key replaces the field's Go name.
func Table(tag string, dirs ...string) (string, error) {
	found := map[string]string{}
	for _, dir := range dirs {
		names, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			return "", err
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return "", err
			}
			collect(file, tag, found)
		}
	}
	var b strings.Builder
	for _, id := range slices.Sorted(maps.Keys(found)) {
		fmt.Fprintf(&b, "%s %s\n", id, found[id])
	}
	return b.String(), nil
}

// collect adds the comments of a file's structs and their fields to found. The keys are Type.key, with the
// key in the tag, and Type for a struct that has such a field.
func collect(file *ast.File, tag string, found map[string]string) {
	for _, d := range file.Decls {
		decl, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, s := range decl.Specs {
			spec, ok := s.(*ast.TypeSpec)
			if !ok {
				continue
			}
			body, ok := spec.Type.(*ast.StructType)
			if !ok {
				continue
			}
			tagged := false
			for _, f := range body.Fields.List {
				if key := keyOf(f, tag); key != "" && len(f.Names) == 1 {
					tagged = true
					add(found, spec.Name.Name+"."+key, f.Names[0].Name, key, cmp.Or(f.Doc, f.Comment))
				}
			}
			if tagged {
				add(found, spec.Name.Name, "", "", cmp.Or(spec.Doc, decl.Doc))
			}
		}
	}
}

func keyOf(f *ast.Field, tag string) string {
	if f.Tag == nil {
		return ""
	}
	text, err := strconv.Unquote(f.Tag.Value)
	if err != nil {
		return ""
	}
	key, _, _ := strings.Cut(reflect.StructTag(text).Get(tag), ",")
	return strings.TrimSuffix(key, "-")
}

func add(found map[string]string, id, name, key string, doc *ast.CommentGroup) {
	text := strings.Join(strings.Fields(doc.Text()), " ")
	if rest, ok := strings.CutPrefix(text, name+" "); ok && name != "" {
		text = key + " " + rest
	}
	if text != "" {
		found[id] = text
	}
}
