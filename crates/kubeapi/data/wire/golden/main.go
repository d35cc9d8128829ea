// Writes the samples beside this file: an object as Go sends it in protobuf, in base64, and the JSON
// that Go makes of those bytes. Run in the directory above: go run ./golden
package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"log"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"wire/registered"
)

func main() {
	log.SetFlags(0)
	scheme := registered.Scheme()
	codec := protobuf.NewSerializer(scheme, scheme)
	for name, object := range samples() {
		if gvk := object.GetObjectKind().GroupVersionKind(); gvk.Kind == "" {
			kinds, _, err := scheme.ObjectKinds(object)
			check(name, err)
			object.GetObjectKind().SetGroupVersionKind(kinds[0])
		}
		var wire bytes.Buffer
		check(name, codec.Encode(object, &wire))
		// Through the bytes and back: what protobuf does not carry is not expected to arrive.
		kind := object.GetObjectKind().GroupVersionKind()
		fresh, err := scheme.New(kind)
		check(name, err)
		var envelope runtime.Unknown
		check(name, envelope.Unmarshal(wire.Bytes()[4:]))
		check(name, fresh.(interface{ Unmarshal([]byte) error }).Unmarshal(envelope.Raw))
		fresh.GetObjectKind().SetGroupVersionKind(kind)
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		check(name, encoder.Encode(fresh))
		check(name, os.WriteFile("golden/"+name+".json", text.Bytes(), 0o644))
		check(name, os.WriteFile("golden/"+name+".base64", wrapped(wire.Bytes()), 0o644))
	}
}

// wrapped is base64 in lines of 76 characters, so that a difference can be seen.
func wrapped(data []byte) []byte {
	text := base64.StdEncoding.EncodeToString(data)
	var out bytes.Buffer
	for len(text) > 76 {
		out.WriteString(text[:76] + "\n")
		text = text[76:]
	}
	out.WriteString(text + "\n")
	return out.Bytes()
}

func check(name string, err error) {
	if err != nil {
		log.Fatalf("%s: %v", name, err)
	}
}
