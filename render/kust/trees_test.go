package kust_test

import (
	"fmt"
	"strings"

	"github.com/weir-gitops/weir/render/tree"
	"pgregory.net/rapid"
)

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {app: web}
spec:
  replicas: 2
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      serviceAccountName: runner
      containers:
      - name: main
        image: nginx:1.14
        args: ["--flag", "010", 'yes', "1e3"]
        env:
        - {name: A, value: "1"}
        - name: B
          valueFrom: {configMapKeyRef: {name: settings, key: b}}
        envFrom: [{secretRef: {name: token}}]
      volumes:
      - {name: v, configMap: {name: settings}}
`

const service = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec:\n  selector: {app: web}\n  ports: [{port: 80, targetPort: http}]\n"

const settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata:\n  b: \"true\"\n  script: |\n    #!/bin/sh\n    echo ${NAME} $(date) {{ v1.x }}\n\n      indented\n  long: " +
	"a text that is long enough to be folded by any printer that folds texts at some width, which none should\n"

const pools = poolHead + "spec:\n  minSize: 1\n  maxSize: 3\n  subnets:\n  - {id: subnet-1}\n  - filters: [{name: 'tag:a', values: [b]}]\n  additionalTags: {a: b}\n  awsLaunchTemplate:\n    instanceType: t3.large\n    iamInstanceProfile: \"nodes\"\n" +
	"---\napiVersion: cluster.x-k8s.io/v1beta1\nkind: MachinePool\nmetadata:\n  name: web\n  annotations: {note: '010'}\nspec:\n  clusterName: main\n  replicas: ${N:-3}\n  failureDomains: [a, b]\n"

// constructs are what kustomize's documentation of its file has, field by field.
func constructs() map[string]tree.Map {
	base := map[string]string{"deployment.yaml": deployment, "service.yaml": service, "settings.yaml": settings, "pools.yaml": pools}
	const all = "resources: [deployment.yaml, service.yaml, settings.yaml, pools.yaml]\n"
	fields := map[string]string{
		"resources":                    "",
		"namespace":                    "namespace: prod\n",
		"namePrefix and nameSuffix":    "namePrefix: a-\nnameSuffix: -z\n",
		"commonLabels":                 "commonLabels: {team: x, nn: \"1\"}\n",
		"commonAnnotations":            "commonAnnotations: {note: \"on\"}\n",
		"labels":                       "labels:\n- pairs: {team: x}\n- pairs: {sel: yy}\n  includeSelectors: true\n- pairs: {tmpl: z}\n  includeTemplates: true\n",
		"labels by field":              "labels:\n- pairs: {team: x}\n  fields: [{path: spec/additionalTags, kind: AWSMachinePool, create: true}]\n",
		"images":                       "images: [{name: nginx, newName: registry.example.com/nginx, newTag: \"1.15\"}]\n",
		"images by digest":             "images: [{name: nginx, digest: 'sha256:24a0c4b4a4c0eb97a1aabb8e29f18e917d05abfe1b7a7c07857230879ce7d3d3'}]\n",
		"replicas":                     "replicas: [{name: web, count: 5}]\n",
		"patches inline":               "patches:\n- patch: |-\n    apiVersion: apps/v1\n    kind: Deployment\n    metadata: {name: web}\n    spec: {template: {spec: {containers: [{name: main, resources: {limits: {cpu: 1}}}, {name: side, image: b}]}}}\n",
		"patches by file":              "patches: [{path: patch.yaml}]\n",
		"patches by selector":          "patches:\n- target: {kind: AWSMachinePool|MachinePool, name: w.*}\n  patch: |-\n    - {op: add, path: /metadata/annotations, value: {x: \"y\"}}\n",
		"patches by label":             "patches:\n- target: {labelSelector: app=web}\n  patch: |-\n    - {op: add, path: /metadata/labels/p, value: \"1\"}\n",
		"patches in JSON":              "patches:\n- target: {kind: Service, name: web}\n  patch: '[{\"op\": \"replace\", \"path\": \"/spec/ports/0/port\", \"value\": 8080}]'\n",
		"patches that rename":          "patches:\n- target: {kind: Service}\n  options: {allowNameChange: true, allowKindChange: true}\n  patch: |-\n    apiVersion: v1\n    kind: Service\n    metadata: {name: other}\n",
		"patches that delete":          "patches:\n- patch: |-\n    $patch: delete\n    apiVersion: v1\n    kind: Service\n    metadata: {name: web}\n- patch: |-\n    apiVersion: apps/v1\n    kind: Deployment\n    metadata: {name: web}\n    spec: {template: {spec: {volumes: [{name: v, $patch: delete}], serviceAccountName: null}}}\n",
		"patches that replace":         "patches:\n- patch: |-\n    apiVersion: v1\n    kind: ConfigMap\n    metadata: {name: settings}\n    data: {$patch: replace, only: this}\n",
		"patchesStrategicMerge":        "patchesStrategicMerge:\n- patch.yaml\n- |-\n  apiVersion: v1\n  kind: Service\n  metadata: {name: web}\n  spec: {type: NodePort}\n",
		"patchesJson6902":              "patchesJson6902:\n- target: {group: apps, version: v1, kind: Deployment, name: web}\n  path: ops.yaml\n",
		"configMapGenerator":           "configMapGenerator:\n- name: gen\n  literals: [a=1, b=\"quoted\", 'c=x=y']\n  files: [data.txt, key=data.txt]\n  envs: [data.env]\n",
		"configMapGenerator options":   "configMapGenerator:\n- name: gen\n  literals: [a=1]\n  options: {disableNameSuffixHash: true, labels: {l: m}, annotations: {nn: o}, immutable: true}\ngeneratorOptions: {labels: {all: \"1\"}}\n",
		"configMapGenerator merge":     "configMapGenerator:\n- name: settings\n  behavior: merge\n  literals: [b=merged]\n",
		"configMapGenerator replace":   "configMapGenerator:\n- name: settings\n  behavior: replace\n  literals: [b=replaced]\n",
		"secretGenerator":              "secretGenerator:\n- name: token\n  type: Opaque\n  literals: [a=b]\n  files: [bin=binary.bin]\n",
		"generated names are followed": "namePrefix: x-\nsecretGenerator: [{name: token, literals: [a=b]}]\nconfigMapGenerator: [{name: settings, behavior: merge, literals: [z=1]}]\n",
		"replacements":                 "replacements:\n- source: {kind: ConfigMap, name: settings, fieldPath: data.b}\n  targets:\n  - select: {kind: AWSMachinePool}\n    fieldPaths: [spec.additionalTags.b]\n    options: {create: true}\n  - select: {kind: Deployment}\n    fieldPaths: ['spec.template.spec.containers.[name=main].env.[name=A].value']\n",
		"replacements of a part":       "replacements:\n- source: {kind: AWSMachinePool, fieldPath: spec.awsLaunchTemplate.instanceType, options: {delimiter: '.', index: 1}}\n  targets: [{select: {kind: Deployment}, fieldPaths: ['spec.template.spec.containers.0.image'], options: {delimiter: ':', index: 1}}]\n",
		"replacements by file":         "replacements: [{path: replacement.yaml}]\n",
		"sortOptions legacy":           "sortOptions: {order: legacy, legacySortOptions: {orderFirst: [ConfigMap], orderLast: [Service]}}\n",
		"sortOptions fifo":             "sortOptions: {order: fifo}\n",
		"buildMetadata":                "buildMetadata: [originAnnotations, managedByLabel]\n",
		"configurations":               "namePrefix: x-\nconfigurations: [config.yaml]\n",
		"crds":                         "crds: [crds.json]\nnamePrefix: y-\n",
		"transformers":                 "transformers:\n- transformer.yaml\n- |\n  apiVersion: builtin\n  kind: PrefixTransformer\n  metadata: {name: p}\n  prefix: pre-\n  fieldSpecs: [{path: metadata/name, kind: Service}]\n",
		"generators":                   "generators:\n- |\n  apiVersion: builtin\n  kind: ConfigMapGenerator\n  metadata: {name: made}\n  literals: [a=b]\n",
		"components":                   "components: [component]\n",
		"a byte order mark":            "# none\nnamePrefix: b-\n",
		"immutable apiVersion":         "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nmetadata: {name: any}\n",
		"a merge key":                  "configMapGenerator:\n- &a {name: one, literals: [a=b]}\n- {<<: *a, name: two}\n",
	}
	out := map[string]tree.Map{}
	for name, text := range fields {
		m := tree.Map{
			"kustomization.yaml": all + text,
			"patch.yaml":         "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  template:\n    spec:\n      containers:\n      - name: main\n        env: [{name: C, value: c}]\n",
			"ops.yaml":           "- {op: replace, path: /spec/replicas, value: 9}\n- {op: add, path: /spec/template/spec/containers/0/args/-, value: \"last\"}\n- {op: copy, from: /metadata/labels/app, path: /metadata/labels/copy}\n",
			"data.txt":           "line one\nline two\n", "data.env": "# comment\nE=1\nF=a b\nG=\n", "binary.bin": "\x00\x01\xff\xfe",
			"replacement.yaml":             "source: {kind: Service, fieldPath: metadata.name}\ntargets: [{select: {kind: MachinePool}, fieldPaths: [spec.clusterName]}]\n",
			"config.yaml":                  "nameReference:\n- kind: MachinePool\n  group: cluster.x-k8s.io\n  fieldSpecs: [{path: spec/other, kind: AWSMachinePool}]\nnamePrefix: [{path: metadata/name}]\n",
			"crds.json":                    `{"github.com/x.A": {"Schema": {"description": "x", "properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}, "spec": {"$ref": "github.com/x.Spec"}}}, "Dependencies": []}, "github.com/x.Spec": {"Schema": {"properties": {"ref": {"x-kubernetes-object-ref-api-version": "v1", "x-kubernetes-object-ref-kind": "ConfigMap", "$ref": "github.com/x.Ref"}}}, "Dependencies": []}, "github.com/x.Ref": {"Schema": {"properties": {"name": {"type": "string"}}}, "Dependencies": []}}`,
			"transformer.yaml":             "apiVersion: builtin\nkind: LabelTransformer\nmetadata: {name: l}\nlabels: {t: \"1\"}\nfieldSpecs: [{path: metadata/labels, create: true}]\n",
			"component/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [extra.yaml]\npatches:\n- target: {kind: AWSMachinePool}\n  patch: |-\n    - {op: replace, path: /spec/maxSize, value: 7}\n",
			"component/extra.yaml":         "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\n",
		}
		for p, text := range base {
			m[p] = text
		}
		if name == "a byte order mark" {
			m["settings.yaml"] = "\ufeff" + settings
		}
		out[name] = m
	}
	return out
}

// drawTree draws a base, and overlays and components over each other, the
// outermost of which is at top.
func drawTree(t *rapid.T) tree.Map {
	m := tree.Map{
		"base/kustomization.yaml": "resources: [deployment.yaml, pools.yaml, settings.yaml]\n",
		"base/deployment.yaml":    deployment, "base/pools.yaml": pools, "base/settings.yaml": settings,
	}
	if rapid.Bool().Draw(t, "service") {
		m["base/service.yaml"] = service
		m["base/kustomization.yaml"] = "resources: [deployment.yaml, service.yaml, pools.yaml, settings.yaml]\n"
	}
	below := "base"
	layers := rapid.IntRange(1, 3).Draw(t, "layers")
	for layer := range layers {
		dir := fmt.Sprintf("layer%d", layer)
		if layer == layers-1 {
			dir = "top"
		}
		var b strings.Builder
		fmt.Fprintf(&b, "resources: [../%s]\n", below)
		if rapid.IntRange(0, 3).Draw(t, "component") == 0 {
			fmt.Fprintf(&b, "components: [../%s-part]\n", dir)
			m[dir+"-part/kustomization.yaml"] = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n" + drawFields(t, m, dir+"-part", layer)
		}
		b.WriteString(drawFields(t, m, dir, layer))
		m[dir+"/kustomization.yaml"] = b.String()
		below = dir
	}
	return m
}

// drawFields draws some fields of a kustomization, and writes the files that
// they name.
func drawFields(t *rapid.T, m tree.Map, dir string, layer int) string {
	value := rapid.SampledFrom([]string{"a", "010", "1e3", "yes", "on", "~", "0x1F", "2026-01-01", "a: b", "#", "- x", "''", "é", "1_000", ".5", "null", "true", " padded ", "${V}", "$(v)", "multi\nline\n", "tab\there"})
	quoted := func() string { return fmt.Sprintf("%q", value.Draw(t, "value")) }
	number := func() int { return rapid.IntRange(0, 9).Draw(t, "number") }
	lists := map[string][]string{}
	var rest strings.Builder
	add := func(field, format string, args ...any) {
		lists[field] = append(lists[field], fmt.Sprintf(format, args...))
	}
	for i := range rapid.IntRange(1, 4).Draw(t, "fields") {
		switch rapid.IntRange(0, 13).Draw(t, "field") {
		case 0:
			lists["namePrefix"] = []string{fmt.Sprintf(" p%d-\n", layer)}
		case 1:
			lists["nameSuffix"] = []string{fmt.Sprintf(" -s%d\n", layer)}
		case 2:
			lists["namespace"] = []string{fmt.Sprintf(" n%d\n", number())}
		case 3:
			add("labels", "- pairs: {l%d: %s}\n  includeSelectors: %t\n", i, quoted(), rapid.Bool().Draw(t, "selectors"))
		case 4:
			lists["commonAnnotations"] = []string{fmt.Sprintf(" {n%d: %s}\n", i, quoted())}
		case 5:
			add("images", "- {name: nginx, newTag: v%d}\n", number())
		case 6:
			add("patches", "- target: {kind: AWSMachinePool}\n  patch: |-\n    - {op: add, path: /spec/additionalTags/t%d, value: %s}\n    - {op: replace, path: /spec/maxSize, value: %d}\n", i, quoted(), number())
		case 7:
			name := fmt.Sprintf("patch%d.yaml", i)
			m[dir+"/"+name] = fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: any}\ndata:\n  b: %s\n  k%d: %s\n", quoted(), i, quoted())
			add("patches", "- {path: %s, target: {kind: ConfigMap, name: .*settings.*}}\n", name)
		case 8:
			add("patches", "- target: {kind: Deployment}\n  patch: |-\n    apiVersion: apps/v1\n    kind: Deployment\n    metadata: {name: any}\n    spec:\n      replicas: %d\n      template: {spec: {containers: [{name: main, env: [{name: X%d, value: %s}]}]}}\n", number(), i, quoted())
		case 9:
			add("configMapGenerator", "- {name: gen%d%s%d, literals: [%q]}\n", layer, strings.TrimPrefix(dir, "layer"), i, "v="+value.Draw(t, "value"))
		case 10:
			m[fmt.Sprintf("%s/data%d.txt", dir, i)] = value.Draw(t, "value")
			add("secretGenerator", "- {name: sec%d%s%d, files: [data%d.txt]}\n", layer, strings.TrimPrefix(dir, "layer"), i, i)
		case 11:
			add("replacements", "- source: {kind: AWSMachinePool, fieldPath: spec.awsLaunchTemplate.instanceType}\n  targets:\n  - select: {kind: MachinePool}\n    fieldPaths: [spec.clusterName, spec.failureDomains.0]\n")
		case 12:
			add("replicas", "- {name: web, count: %d}\n", number())
		case 13:
			add("patches", "- target: {kind: MachinePool}\n  patch: |-\n    - op: add\n      path: /spec/failureDomains/-\n      value: %s\n", quoted())
		}
	}
	for _, name := range []string{"namePrefix", "nameSuffix", "namespace", "commonAnnotations"} {
		for _, v := range lists[name] {
			rest.WriteString(name + ":" + v)
		}
		delete(lists, name)
	}
	for _, name := range []string{"labels", "images", "patches", "configMapGenerator", "secretGenerator", "replacements", "replicas"} {
		if len(lists[name]) > 0 {
			rest.WriteString(name + ":\n" + strings.Join(lists[name], ""))
		}
	}
	return rest.String()
}
