// Writes ../wire.txt: how the built-in kinds of Kubernetes look in protobuf and in JSON.
//
// Run by hand in this directory, after kinds.txt was made for the same version of Kubernetes and
// go.mod names the modules of that version:
//
//	go run . >../wire.txt
//	go run ./golden
//
// The numbers and names are read from the tags of the Go types, which Kubernetes keeps equal to its
// own generated code. What this program does not know how to describe makes it fail, so that no
// field is silently wrong.
package main

import (
	"bufio"
	"encoding"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"reflect"
	"slices"
	"strings"

	"k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"wire/registered"
)

const head = `# The wire format of the built-in kinds of Kubernetes v1.36.4, made by wire/main.go. Not edited.
#
# kind apps/v1 Deployment apps.v1.Deployment
#   Which message a kind is. The version * stands for every version that is served.
# message apps.v1.DeploymentSpec
#  1 replicas *int32 empty
#   A field: its number, its name in JSON, its type, when JSON leaves it out. The fields stand in the
#   order of the Go struct, which is the order of JSON. The name = means that the fields of the
#   message stand in JSON among those of its owner.
#   *X may be absent, []X is a list, {}X a map from strings to X. strings is a message whose field 1
#   is a list of them.
#   empty: left out if it is absent, has no entries, or is zero, false, null or "".
`

// Types with a JSON of their own, by the words for them.
var special = map[string]string{
	"meta.v1.Time":                                  "time",
	"meta.v1.MicroTime":                             "microtime",
	"meta.v1.FieldsV1":                              "raw",
	"runtime.RawExtension":                          "raw",
	"apiextensions.v1.JSON":                         "raw",
	"quantity.Quantity":                             "quantity",
	"util.intstr.IntOrString":                       "intorstring",
	"apiextensions.v1.JSONSchemaPropsOrArray":       "schemaorlist",
	"apiextensions.v1.JSONSchemaPropsOrBool":        "schemaorbool",
	"apiextensions.v1.JSONSchemaPropsOrStringArray": "schemaorstrings",
}

type unmarshaler interface{ Unmarshal([]byte) error }

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
	message       = reflect.TypeFor[unmarshaler]()
	typeMeta      = reflect.TypeFor[meta.TypeMeta]()
)

type catalog struct {
	blocks  map[string]string
	waiting []reflect.Type
}

func main() {
	log.SetFlags(0)
	all := catalog{blocks: map[string]string{}}
	var kinds []string
	scheme := registered.Scheme()
	for _, kind := range servedKinds() {
		known, ok := scheme.AllKnownTypes()[kind]
		if !ok {
			log.Fatalf("%v is not registered", kind)
		}
		kinds = append(kinds, fmt.Sprintf("kind %s %s %s",
			kind.GroupVersion(), kind.Kind, all.refer(known)))
	}
	kinds = append(kinds,
		"kind * DeleteOptions "+all.refer(reflect.TypeFor[meta.DeleteOptions]()),
		"kind v1 List "+all.refer(reflect.TypeFor[v1.List]()),
		"kind v1 Status "+all.refer(reflect.TypeFor[meta.Status]()))
	all.refer(reflect.TypeFor[apiextensions.JSONSchemaProps]())
	for len(all.waiting) > 0 {
		next := all.waiting[0]
		all.waiting = all.waiting[1:]
		all.describe(next)
	}
	slices.Sort(kinds)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	fmt.Fprintf(out, "%s\n%s\n", head, strings.Join(slices.Compact(kinds), "\n"))
	var names []string
	for name := range all.blocks {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(out, "\nmessage %s\n%s", name, all.blocks[name])
	}
}

// servedKinds reads which kinds are served from kinds.txt: those of resources and of their parts.
func servedKinds() []schema.GroupVersionKind {
	text, err := os.ReadFile("../kinds.txt")
	if err != nil {
		log.Fatal(err)
	}
	var kinds []schema.GroupVersionKind
	var group, version string
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		switch {
		case len(words) >= 3 && words[0] == "group":
			group, version = named(words[1]), words[2]
		case len(words) >= 5 && words[0] == "kind":
			kinds = append(kinds, schema.GroupVersionKind{
				Group: group, Version: version, Kind: words[1]})
		case len(words) == 4 && words[0] == "sub":
			parts := strings.Split(words[2], "/")
			kinds = append(kinds, schema.GroupVersionKind{
				Group: named(parts[0]), Version: parts[1], Kind: parts[2]})
		}
	}
	return kinds
}

func named(group string) string {
	if group == "core" {
		return ""
	}
	return group
}

// refer names a message and sees to it that it is described.
func (c *catalog) refer(t reflect.Type) string {
	name := short(t)
	if _, known := c.blocks[name]; !known {
		c.blocks[name] = ""
		c.waiting = append(c.waiting, t)
	}
	return name
}

func (c *catalog) describe(t reflect.Type) {
	seen := map[string]bool{}
	for _, name := range jsonNames(t) {
		if seen[name] {
			log.Fatalf("%v has two fields %s", t, name)
		}
		seen[name] = true
	}
	var block strings.Builder
	for i := range t.NumField() {
		field := t.Field(i)
		if field.Type == typeMeta {
			continue // Kind and version stand in the envelope.
		}
		number := number(t, field)
		name, options := jsonTag(field)
		if name == "" {
			if !field.Anonymous || field.Type.Kind() != reflect.Struct {
				log.Fatalf("%v.%s has no name", t, field.Name)
			}
			fmt.Fprintf(&block, " %s = %s\n", number, c.refer(field.Type))
			continue
		}
		fmt.Fprintf(&block, " %s %s %s", number, name, c.word(t, field.Type))
		if when := leftOut(field.Type, options); when != "" {
			fmt.Fprintf(&block, " %s", when)
		}
		block.WriteString("\n")
	}
	c.blocks[short(t)] = block.String()
}

func number(t reflect.Type, field reflect.StructField) string {
	parts := strings.Split(field.Tag.Get("protobuf"), ",")
	if len(parts) < 3 {
		log.Fatalf("%v.%s has no number", t, field.Name)
	}
	return parts[1]
}

func jsonTag(field reflect.StructField) (string, []string) {
	parts := strings.Split(field.Tag.Get("json"), ",")
	for _, option := range parts[1:] {
		if !slices.Contains([]string{"omitempty", "omitzero", "inline", ""}, option) {
			log.Fatalf("%s: the option %s", field.Name, option)
		}
	}
	if parts[0] == "-" || (parts[0] == "" && !field.Anonymous) {
		log.Fatalf("%s is not in JSON", field.Name)
	}
	return parts[0], parts[1:]
}

// jsonNames lists the names of a message's fields in JSON, with those that are written inline.
func jsonNames(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		field := t.Field(i)
		name, _ := jsonTag(field)
		if name == "" {
			names = append(names, jsonNames(field.Type)...)
		} else {
			names = append(names, name)
		}
	}
	return names
}

// leftOut tells whether Go leaves out a field that is empty. A struct is never empty, and only times
// are known to be left out if they are zero.
func leftOut(t reflect.Type, options []string) string {
	if slices.Contains(options, "omitzero") {
		if special[short(t)] != "time" {
			log.Fatalf("%v is left out if it is zero", t)
		}
		return "empty"
	}
	if slices.Contains(options, "omitempty") && t.Kind() != reflect.Struct {
		return "empty"
	}
	return ""
}

// word describes a field's type.
func (c *catalog) word(owner, t reflect.Type) string {
	if word, ok := special[short(t)]; ok {
		return word
	}
	if t.Implements(jsonMarshaler) || t.Implements(textMarshaler) {
		if t.Kind() != reflect.Pointer {
			log.Fatalf("%v: %v has a JSON of its own", owner, t)
		}
	}
	switch t.Kind() {
	case reflect.Pointer:
		word := c.word(owner, t.Elem())
		if strings.ContainsAny(word, "*[{") {
			log.Fatalf("%v: %v", owner, t)
		}
		return "*" + word
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		word := c.word(owner, t.Elem())
		if reflect.PointerTo(t).Implements(message) {
			if word != "string" {
				log.Fatalf("%v: %v", owner, t)
			}
			return "strings"
		}
		if strings.ContainsAny(word, "*[{") || word == "bytes" {
			log.Fatalf("%v: %v", owner, t)
		}
		return "[]" + word
	case reflect.Map:
		word := c.word(owner, t.Elem())
		if t.Key().Kind() != reflect.String || strings.ContainsAny(word, "*[{") {
			log.Fatalf("%v: %v", owner, t)
		}
		return "{}" + word
	case reflect.Struct:
		if !reflect.PointerTo(t).Implements(message) {
			log.Fatalf("%v: %v is no message", owner, t)
		}
		return c.refer(t)
	case reflect.String, reflect.Bool, reflect.Int32, reflect.Int64:
		return t.Kind().String()
	case reflect.Float64:
		return "double"
	}
	log.Fatalf("%v: %v", owner, t)
	return ""
}

// short is the name that kinds.txt has for a type: core.v1.Pod.
func short(t reflect.Type) string {
	for _, prefix := range []struct{ path, brief string }{
		{"k8s.io/apimachinery/pkg/apis/", ""},
		{"k8s.io/apimachinery/pkg/api/resource", "quantity"},
		{"k8s.io/apimachinery/pkg/util/", "util."},
		{"k8s.io/apimachinery/pkg/", ""},
		{"k8s.io/apiextensions-apiserver/pkg/apis/", ""},
		{"k8s.io/api/", ""},
	} {
		if rest, ok := strings.CutPrefix(t.PkgPath(), prefix.path); ok {
			return prefix.brief + strings.ReplaceAll(rest, "/", ".") + "." + t.Name()
		}
	}
	return t.String()
}
