package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/weir-gitops/weir/render/sops/sopstest"
)

// The secrets that are taken apart are made of letters that no output has: phonetic
// ones, with what texts are taken apart at between. So any piece is seen, however short.
const phonetic = "ɐɑɒɓɔɕɖɗɘəɚɛɜɝɞɟɠɡɢɣɤɥɦɧɨɩɪɫɬɭɮɯɰɱɲɳɴɵɶɷɸɹɺɻɼɽɾɿʀʁʂʃʄʅʆʇʈʉʊʋʌʍʎʏʐʑʒʓʔʕʖʗʘʙʚʛʜʝʞʟʠʡʢʣʤʥʦʧʨʩʪʫʬʭʮʯ"

// phoneticForm matches such a letter as it is, as JSON and Go write it, and in URLs.
var phoneticForm = regexp.MustCompile(`[ɐ-ʯ]|\\u02[5-9aA][0-9a-fA-F]|%[cC][9aA]%[89aAbB]`)

// encodedForm matches what may be base64.
var encodedForm = regexp.MustCompile(`[A-Za-z0-9+/]{12,}`)

// phoneticAt is where a text has such a letter, or three of them in base64; -1 if nowhere.
func phoneticAt(text string) int {
	if at := phoneticForm.FindStringIndex(text); at != nil {
		return at[0]
	}
	for _, at := range encodedForm.FindAllStringIndex(text, -1) {
		for from := at[0]; from < at[0]+4; from++ {
			plain, _ := base64.RawStdEncoding.DecodeString(text[from : from+(at[1]-from)/4*4])
			letters := 0
			for i := 0; i+1 < len(plain); i++ {
				if plain[i]&^3 == 0xc8 && plain[i+1]&^0x3f == 0x80 {
					i++
					letters++
				} else {
					letters = 0
				}
				if letters == 3 {
					return at[0]
				}
			}
		}
	}
	return -1
}

// pieceOf is a secret of a number of bytes: letters with marks between, where it is long
// enough, and else a single character.
func pieceOf(n int) string {
	letters := []rune(phonetic)
	var b strings.Builder
	for i := 0; b.Len()+2 <= n; i++ {
		if i%4 == 3 {
			b.WriteString(":-")
			continue
		}
		b.WriteRune(letters[(i*7+n)%len(letters)])
	}
	if b.Len() < n {
		b.WriteByte('7')
	}
	return b.String()
}

// wayOut takes a secret text to a plain field: the files of an overlay.
type wayOut func(t *testing.T, k sopstest.Key, text string) map[string]string

func replacement(source, target string) string {
	return fmt.Sprintf("- source: {%s}\n  targets: [{%s}]\n", source, target)
}

// waysOut are all ways that kustomize has. Overlays read pools.yaml, whose group has a
// tag team, and scratch.yaml, a ConfigMap.
func waysOut() map[string]wayOut {
	const toTag = "select: {kind: AWSMachinePool}, fieldPaths: [spec.additionalTags.team]"
	secret := func(t *testing.T, k sopstest.Key, text string) string {
		return sopstest.Secret(t, k, "s", "value", text)
	}
	replaced := func(list ...string) wayOut {
		return func(t *testing.T, k sopstest.Key, text string) map[string]string {
			return map[string]string{"kustomization.yaml": "resources: [pools.yaml, scratch.yaml, s.yaml]\nreplacements:\n" + strings.Join(list, ""), "s.yaml": secret(t, k, text)}
		}
	}
	generated := func(generator, source string, file func(t *testing.T, k sopstest.Key, text string) string, more ...string) wayOut {
		return func(t *testing.T, k sopstest.Key, text string) map[string]string {
			return map[string]string{"kustomization.yaml": "resources: [pools.yaml, scratch.yaml]\n" + generator + "\nreplacements:\n" + replacement(source, toTag) + strings.Join(more, ""), "s.bin": file(t, k, text)}
		}
	}
	binary := func(form string) func(t *testing.T, k sopstest.Key, text string) string {
		return func(t *testing.T, k sopstest.Key, text string) string {
			return sopstest.Binary(t, k, strings.ReplaceAll(form, "SECRET", text))
		}
	}
	const noHash = "options: {disableNameSuffixHash: true}"
	const from = "kind: Secret, name: s, fieldPath: stringData.value"
	return map[string]wayOut{
		"whole":         replaced(replacement(from, toTag)),
		"source":        replaced(replacement(from+`, options: {delimiter: ":"}`, toTag)),
		"target":        replaced(replacement(from, toTag+`, options: {delimiter: "-", index: 1}`)),
		"prefix":        replaced(replacement(from, toTag+`, options: {delimiter: "-", index: -1}`)),
		"left":          replaced(replacement(from, toTag), replacement("kind: Cluster, fieldPath: metadata.name", toTag+`, options: {delimiter: ":", index: 1}`)),
		"twice":         replaced(replacement(from+`, options: {delimiter: ":"}`, "select: {kind: ConfigMap}, fieldPaths: [data.one]"), replacement(`kind: ConfigMap, fieldPath: data.one, options: {delimiter: "ɣ"}`, toTag)),
		"name":          replaced(replacement(from, `select: {kind: MachinePool}, fieldPaths: [metadata.name]`)),
		"label":         replaced(replacement(from, `select: {kind: MachinePool}, fieldPaths: [metadata.labels.x], options: {create: true}`)),
		"annotation":    replaced(replacement(from, `select: {kind: AWSMachinePool}, fieldPaths: [metadata.annotations.x], options: {create: true}`)),
		"image":         replaced(replacement(from, toTag), "images: [{name: \"[^:]*\", newName: x}]\nconfigurations: [c.yaml]\n"),
		"mapping":       replaced(replacement("kind: Secret, name: s, fieldPath: stringData", "select: {kind: AWSMachinePool}, fieldPaths: [spec.additionalTags]")),
		"configmap-env": generated("configMapGenerator: [{name: g, envs: [s.bin], "+noHash+"}]", "kind: ConfigMap, name: g, fieldPath: data.B", binary("A=x\nB=SECRET\nC=y\n")),
		"dotenv": generated("configMapGenerator: [{name: g, envs: [s.env], "+noHash+"}]", "kind: ConfigMap, name: g, fieldPath: data.B", func(t *testing.T, k sopstest.Key, text string) string {
			return sopstest.Dotenv(t, k, sopstest.Field{Path: "B", Value: text})
		}),
		"secret-env":  generated("secretGenerator: [{name: g, envs: [s.bin], "+noHash+"}]", "kind: Secret, name: g, fieldPath: data.B", binary("A=x\nB=SECRET\nC=y\n")),
		"base64":      generated("secretGenerator: [{name: g, files: [B=s.bin], "+noHash+"}]", `kind: Secret, name: g, fieldPath: data.B`, binary("SECRET")),
		"bytes":       generated("configMapGenerator: [{name: g, files: [B=s.bin], "+noHash+"}]", `kind: ConfigMap, name: g, fieldPath: binaryData.B`, binary("\x00\x01\xffSECRET")),
		"file":        generated("configMapGenerator: [{name: g, files: [B=s.bin], "+noHash+"}]", `kind: ConfigMap, name: g, fieldPath: data.B, options: {delimiter: "\n", index: 1}`, binary("first\nSECRET\nlast\n")),
		"json":        generated("configMapGenerator: [{name: g, files: [B=s.bin], "+noHash+"}]", `kind: ConfigMap, name: g, fieldPath: data.B, options: {delimiter: "\"", index: 7}`, binary(`{"a": {"b": "x", "c": "SECRET"}}`)),
		"json-member": generated("configMapGenerator: [{name: g, files: [B=s.bin], "+noHash+"}]", "kind: ConfigMap, name: g, fieldPath: data.B", binary(`{"a": {"b": "x", "c": "SECRET"}}`), replacement("kind: Cluster, fieldPath: metadata.name", "select: {kind: AWSMachinePool}, fieldPaths: [spec.additionalTags.team.a.b]")),
		"yaml-member": generated("configMapGenerator: [{name: g, files: [B=s.bin], "+noHash+"}]", "kind: ConfigMap, name: g, fieldPath: data.B", binary("a:\n  b: x\n  c: \"SECRET\"\n"), replacement("kind: Cluster, fieldPath: metadata.name", "select: {kind: AWSMachinePool}, fieldPaths: [spec.additionalTags.team.a.b]")),
		"hash": func(t *testing.T, k sopstest.Key, text string) map[string]string {
			return map[string]string{"kustomization.yaml": "resources: [pools.yaml, scratch.yaml]\nconfigurations: [names.yaml]\nsecretGenerator: [{name: boot, files: [value=s.bin]}]\n",
				"names.yaml": "nameReference: [{kind: Secret, version: v1, fieldSpecs: [{kind: MachinePool, path: spec/template/spec/bootstrap/dataSecretName}]}]\n", "s.bin": sopstest.Binary(t, k, text)}
		},
		"patch": func(t *testing.T, k sopstest.Key, text string) map[string]string {
			plain := func(path, v string) sopstest.Field { return sopstest.Field{Path: path, Value: v, Plain: true} }
			return map[string]string{"kustomization.yaml": "resources: [pools.yaml, scratch.yaml]\npatches: [{path: s.yaml}]\n",
				"s.yaml": sopstest.YAML(t, k, plain("apiVersion", "infrastructure.cluster.x-k8s.io/v1beta2"), plain("kind", "AWSMachinePool"), plain("metadata.name", "web"), sopstest.Field{Path: "spec.additionalTags.team", Value: text})}
		},
		"json-patch": func(t *testing.T, k sopstest.Key, text string) map[string]string {
			files := replaced(replacement(from, "select: {kind: AWSMachinePool}, fieldPaths: [metadata.annotations.x], options: {create: true}"))(t, k, text)
			return map[string]string{"kustomization.yaml": "resources: [in]\npatches: [{target: {kind: AWSMachinePool}, patch: '[{\"op\": \"move\", \"from\": \"/metadata/annotations/x\", \"path\": \"/spec/additionalTags/team\"}]'}]\n",
				"in/kustomization.yaml": files["kustomization.yaml"], "in/s.yaml": files["s.yaml"], "in/pools.yaml": "", "in/scratch.yaml": ""}
		},
		"test": func(t *testing.T, k sopstest.Key, text string) map[string]string {
			text = strings.Repeat("Q", len(text)) // which kustomize compares as it is
			return map[string]string{"kustomization.yaml": "resources: [pools.yaml, scratch.yaml, s.yaml]\npatches: [{target: {kind: Secret, name: s}, path: p.json}]\n", "s.yaml": secret(t, k, text),
				"p.json": string(must(json.Marshal([]map[string]string{{"op": "test", "path": "/stringData/value", "value": text}})))}
		},
		"prefix-transformer": func(t *testing.T, k sopstest.Key, text string) map[string]string {
			plain := func(path, v string) sopstest.Field { return sopstest.Field{Path: path, Value: v, Plain: true} }
			return map[string]string{"kustomization.yaml": "resources: [pools.yaml, scratch.yaml]\ntransformers: [s.yaml]\n",
				"s.yaml": sopstest.YAML(t, k, plain("apiVersion", "builtin"), plain("kind", "PrefixTransformer"), plain("metadata.name", "p"), sopstest.Field{Path: "prefix", Value: text}, plain("fieldSpecs.[].path", "metadata/name"))}
		},
		"unset":   replaced(replacement(from, toTag+`, options: {delimiter: "-", index: 0}`), replacement(from, toTag+`, options: {delimiter: "-", index: 9}`), "", replacement("kind: ConfigMap, fieldPath: data.brace", toTag+`, options: {delimiter: "-", index: -1}`)),
		"message": replaced(replacement(from, "select: {kind: ConfigMap}, fieldPaths: [data.one]"), replacement(`kind: ConfigMap, fieldPath: data.one, options: {delimiter: ":", index: 77777}`, toTag)),
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// piecesTree has an overlay for each way and each size.
func piecesTree(t *testing.T, w *canaryWorld) map[string]string {
	pools := "apiVersion: cluster.x-k8s.io/v1beta1\nkind: Cluster\nmetadata: {name: demo}\n---\n" + strings.Replace(canaryPool("web", "dataSecretName: boot", "x-y-z"), "kind: AWSMachinePool\nmetadata: {", "kind: AWSMachinePool\nmetadata: {annotations: {y: z}, ", 1)
	scratch := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: scratch}\ndata: {one: \"x-y-z\", brace: \"${\"}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: boot}\nstringData: {value: x}\n"
	out := map[string]string{}
	for name, way := range waysOut() {
		for _, n := range []int{1, 5, 40, 4096} {
			dir := fmt.Sprintf("pieces/%s-%d/", name, n)
			files := way(t, w.key, pieceOf(n))
			if name == "dotenv" {
				files["s.env"] = files["s.bin"]
				delete(files, "s.bin")
			}
			files["c.yaml"] = "images: [{path: spec/additionalTags/team}]\n"
			if _, nested := files["in/pools.yaml"]; nested {
				files["in/pools.yaml"], files["in/scratch.yaml"] = pools, scratch
			} else {
				files["pools.yaml"], files["scratch.yaml"] = pools, scratch
			}
			if name == "hash" {
				files["scratch.yaml"], _, _ = strings.Cut(scratch, "---")
			}
			for file, text := range files {
				out[dir+file] = text
			}
		}
	}
	return out
}

func piecesConfig(t *testing.T, w *canaryWorld) string {
	t.Helper()
	file := filepath.Join(w.dir, "pieces.yaml")
	text := fmt.Sprintf(`apiVersion: weir.dev/v1alpha1
kind: Config
instance: fleet
stateDir: state-of-pieces
listen: 127.0.0.1:0
interval: 300ms
aws: {endpoint: %[1]s}
sources:
- {name: pools, url: %[2]s, ref: {branch: main}, interval: 50ms, auth: {username: weir, passwordFile: password}, proxy: ""}
forges:
- {type: gitea, url: %[3]s/platform/fleet, tokenFile: forge-token}
targets:
- {name: "{1}", path: "pieces/*", region: eu-west-1, ageKeyFiles: [%[4]q]}
`, w.url, w.repo.URL(), w.forge.url, w.keyFile)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// quiet fails the test where an output has a letter of a secret.
func quiet(t *testing.T, where, output string) {
	t.Helper()
	if at := phoneticAt(output); at >= 0 {
		t.Errorf("%s shows a piece of a secret: …%s…", where, output[max(0, at-200):min(len(output), at+100)])
	}
}

// TestCanaryPieces takes secrets of 1 to 4,096 bytes apart in every way that kustomize
// has. Each target is refused, nothing of it gets to AWS, and no piece is shown.
func TestCanaryPieces(t *testing.T) {
	t.Parallel()
	w := newCanaryWorld(t)
	tree := piecesTree(t, w)
	overlays := map[string]bool{}
	for file := range tree {
		overlays[strings.Split(file, "/")[1]] = true
	}
	w.repo.Write(tree)
	w.repo.Commit("take secrets apart")
	config := piecesConfig(t, w)
	_, out := w.command(t, "plan", "--config", config, "-o", "json")
	quiet(t, "weir plan -o json", out)
	for name := range overlays {
		_, out := w.command(t, "validate", filepath.Join(w.checkout(t, tree), "pieces", name), "--age-key-file", w.keyFile, "-o", "json")
		quiet(t, "weir validate "+name, out)
		if !refusedForSecrets(out) && !refusedOtherwise(name, out) {
			t.Errorf("%s is not refused:\n%s", name, out)
		}
		_, out = w.command(t, "render", filepath.Join(w.checkout(t, tree), "pieces", name), "--age-key-file", w.keyFile)
		quiet(t, "weir render "+name, out)
	}
	for _, args := range [][]string{{"plan"}, {"plan", "-o", "markdown"}, {"apply", "--yes"}, {"status"}} {
		_, out := w.command(t, append(args, "--config", config)...)
		quiet(t, "weir "+strings.Join(args, " "), out)
	}
	for _, c := range w.aws.Calls() {
		body, _ := url.QueryUnescape(string(c.Body))
		quiet(t, c.Operation, body)
		if strings.HasPrefix(c.Operation, "Create") {
			t.Errorf("AWS is asked for %s: %s", c.Operation, body)
		}
	}
	w.watchPieces(t, config, slices.Sorted(maps.Keys(overlays)))
}

// refusedForSecrets reports a finding about a secret, or that kustomize cannot look into one.
func refusedForSecrets(out string) bool {
	return slices.ContainsFunc([]string{`"secret-in-plain-field"`, `"secret-in-name"`, `"secret-cut"`, "it cannot read the secret"}, func(s string) bool { return strings.Contains(out, s) })
}

// refusedOtherwise reports the overlays that are refused for another reason: what they
// make of a secret is no build at all.
func refusedOtherwise(name, out string) bool {
	way := name[:strings.LastIndexByte(name, '-')]
	return (way == "message" || way == "unset") && strings.Contains(out, `"severity": "error"`)
}

// checkout writes the tree to the disk, once.
func (w *canaryWorld) checkout(t *testing.T, tree map[string]string) string {
	t.Helper()
	root := filepath.Join(w.dir, "checkout")
	if _, err := os.Stat(root); err == nil {
		return root
	}
	writeTree(t, root, tree)
	return root
}

// watchPieces has the daemon follow the overlays, and reads all that it shows.
func (w *canaryWorld) watchPieces(t *testing.T, config string, overlays []string) {
	t.Helper()
	d := w.start(t, config)
	d.await("a refusal of most targets", func() bool {
		return strings.Count(d.get("/api/v1/targets"), "secret value") > len(overlays)/2 && w.forge.got() != ""
	})
	paths := []string{"/", "/pools", "/activity", "/activity?show=passes", "/configuration", "/api/v1/pools", "/api/v1/targets", "/api/v1/events", "/api/v1/history", "/api/v1/plans", "/metrics", "/readyz"}
	for _, name := range overlays {
		paths = append(paths, "/targets/"+name, "/targets/"+name+"/plan")
	}
	for _, path := range paths {
		quiet(t, path, d.get(path))
	}
	quiet(t, "the log", d.log.String())
	quiet(t, "the forge", w.forge.got())
}

// TestPhoneticForms holds what is looked for to what can be shown.
func TestPhoneticForms(t *testing.T) {
	for _, n := range []int{5, 8, 40} {
		text := pieceOf(n)
		if len(text) != n || !utf8.ValidString(text) {
			t.Fatalf("%q has %d bytes", text, len(text))
		}
		for form, shown := range shownForms(text) {
			if strings.HasPrefix(form, "base64") && n < 40 {
				continue
			}
			if phoneticAt(shown) < 0 {
				t.Errorf("%q is not seen in %s: %q", text, form, shown)
			}
		}
	}
	if got := base64.StdEncoding.EncodeToString([]byte("plain text, and nothing of a secret in it")); phoneticAt(got) >= 0 {
		t.Error(got)
	}
}
