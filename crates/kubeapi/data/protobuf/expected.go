package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

// expected writes each example of the file as the real encoder does, one on a line.
func expected(path string) {
	if err := apiextensionsv1.AddToScheme(scheme.Scheme); err != nil {
		panic(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	examples := []json.RawMessage{}
	if err := json.Unmarshal(text, &examples); err != nil {
		panic(err)
	}
	encoder := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	for _, example := range examples {
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(example, nil, nil)
		if err != nil {
			panic(err)
		}
		bytes, err := runtime.Encode(encoder, object)
		if err != nil {
			panic(err)
		}
		fmt.Println(base64.StdEncoding.EncodeToString(bytes))
	}
}
