// Command protobuf distils ../protobuf.txt from the published Go types of Kubernetes.
//
//	go run . ../kinds.txt > ../protobuf.txt
//
//	go run . ../kinds.txt ../../src/request/protobuf/examples.json > ../expected/protobuf.txt
//
// Run by hand when the version of Kubernetes that we follow moves on; review the difference. Only
// facts are taken: for each type that kinds.txt names, the protobuf number of each of its fields.
//
//	TYPE FIELD=NUMBER[?][*] … =NUMBER:TYPE …
//
// "?" is a field that Go's JSON leaves out when it is zero, although protobuf has it; "*" one whose
// lists are wrapped in a message of their own; a number without a field is a struct whose fields
// stand in JSON among those of its owner. The second command writes what the real encoder makes of
// some examples, in base64, for our tests.
package main

import (
	"bufio"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/scheme"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

func main() {
	if len(os.Args) > 2 {
		expected(os.Args[2])
		return
	}
	wanted := map[string]bool{}
	file, err := os.Open(os.Args[1])
	if err != nil {
		panic(err)
	}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		// A type with a shape of its own ("= any") is no struct in JSON and has no fields there.
		words := strings.Fields(lines.Text())
		if len(words) > 1 && words[0] == "type" && (len(words) == 2 || words[2] != "=") {
			wanted[words[1]] = true
		}
	}
	found := map[string]string{}
	for _, known := range scheme.Scheme.AllKnownTypes() {
		walk(known, wanted, found)
	}
	for _, known := range apiextensions.Scheme.AllKnownTypes() {
		walk(known, wanted, found)
	}
	walk(reflect.TypeOf(meta.DeleteOptions{}), wanted, found)
	names := []string{}
	for name, line := range found {
		if wanted[name] && line != name {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	fmt.Println("# Facts of Kubernetes v1.36.4, made by protobuf/main.go, which explains the lines. Not edited.")
	for _, name := range names {
		fmt.Println(found[name])
	}
}

func walk(t reflect.Type, wanted map[string]bool, found map[string]string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	name := short(t)
	if _, seen := found[name]; seen || t.Kind() != reflect.Struct || !strings.HasPrefix(t.PkgPath(), "k8s.io/") {
		return
	}
	line := name
	for i := range t.NumField() {
		field := t.Field(i)
		tag := strings.Split(field.Tag.Get("protobuf"), ",")
		if len(tag) < 2 || tag[1] == "" {
			continue
		}
		json := strings.Split(field.Tag.Get("json"), ",")
		if json[0] == "" {
			line += " =" + tag[1] + ":" + short(field.Type)
			wanted[short(field.Type)] = wanted[short(field.Type)] || wanted[name]
		} else {
			line += " " + json[0] + "=" + tag[1] + marks(field.Type, json[1:])
		}
	}
	found[name] = line
	for i := range t.NumField() {
		if t.Field(i).Tag.Get("protobuf") != "" {
			walk(t.Field(i).Type, wanted, found)
		}
	}
}

func marks(t reflect.Type, options []string) string {
	marks := ""
	for _, option := range options {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
		case reflect.Struct:
			if option == "omitzero" {
				marks = "?"
			}
		default:
			if option == "omitzero" || option == "omitempty" {
				marks = "?"
			}
		}
	}
	if t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if _, wrapped := reflect.PointerTo(t).MethodByName("Marshal"); wrapped && t.Kind() == reflect.Slice {
		marks += "*"
	}
	return marks
}

// short is the name that kinds.txt uses.
func short(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	path := strings.NewReplacer(
		"k8s.io/apimachinery/pkg/apis/meta/", "meta.",
		"k8s.io/apimachinery/pkg/api/resource", "quantity",
		"k8s.io/apimachinery/pkg/util/", "util.",
		"k8s.io/apimachinery/pkg/runtime", "runtime",
		"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/", "apiextensions.",
		"k8s.io/api/", "",
	).Replace(t.PkgPath())
	return strings.ReplaceAll(path, "/", ".") + "." + t.Name()
}
