// SPDX-License-Identifier: BSD-3-Clause
/*
 * The C side of Kutrace.java:
 * gcc -shared -fPIC -I$JAVA_HOME/include -I$JAVA_HOME/include/linux kutrace_java.c -lkutrace -o libkutrace_java.so
 */
#include <jni.h>
#include <kutrace.h>
#include <stdlib.h>

#define NATIVE(type, name, ...)                                               \
	JNIEXPORT type JNICALL Java_Kutrace_##name(JNIEnv *env, jclass class, ##__VA_ARGS__)

static struct kutrace_site *at(jlong site)
{
	return (struct kutrace_site *)(intptr_t)site;
}

/* Numbers as words, and where there is a text that instead. */
static struct kutrace_fields fields_of(JNIEnv *env, jlongArray words, jobjectArray texts)
{
	struct kutrace_fields fields = KUTRACE_FIELDS;
	jsize n, count = (*env)->GetArrayLength(env, words);

	for (n = 0; n < count; n++) {
		jstring text = (*env)->GetObjectArrayElement(env, texts, n);
		const char *bytes = text ? (*env)->GetStringUTFChars(env, text, NULL) : NULL;
		jlong word;

		if (bytes) {
			kutrace_fields_text(&fields, bytes);
			(*env)->ReleaseStringUTFChars(env, text, bytes);
		} else {
			(*env)->GetLongArrayRegion(env, words, n, 1, &word);
			kutrace_fields_word(&fields, word);
		}
		if (text)
			(*env)->DeleteLocalRef(env, text);
	}
	return fields;
}

NATIVE(jboolean, isOn)
{
	return kutrace_is_on();
}

/* The place and its name stay as long as the program, as the library wants them. */
NATIVE(jlong, site0, jbyteArray name)
{
	jsize bytes = (*env)->GetArrayLength(env, name);
	struct kutrace_site *site = calloc(1, sizeof(*site) + bytes + 1);

	if (!site) {
		(*env)->ThrowNew(env, (*env)->FindClass(env, "java/lang/OutOfMemoryError"), "a place of kutrace");
		return 0;
	}
	(*env)->GetByteArrayRegion(env, name, 0, bytes, (jbyte *)(site + 1));
	site->name = (const char *)(site + 1);
	site->bytes = bytes;
	return (intptr_t)site;
}

NATIVE(jboolean, mark0, jlong site)
{
	return kutrace_site_mark(at(site)) == 1;
}

NATIVE(jboolean, value0, jlong site, jlong number)
{
	return kutrace_site_value(at(site), number) == 1;
}

NATIVE(jboolean, begin0, jlong site)
{
	return kutrace_site_begin(at(site)) == 1;
}

NATIVE(jboolean, end0, jlong site)
{
	return kutrace_site_end(at(site)) == 1;
}

NATIVE(jboolean, event0, jlong site, jlongArray words, jobjectArray texts)
{
	struct kutrace_fields fields = fields_of(env, words, texts);

	return kutrace_site_event(at(site), &fields) == 1;
}

NATIVE(jboolean, beginWith0, jlong site, jlongArray words, jobjectArray texts)
{
	struct kutrace_fields fields = fields_of(env, words, texts);

	return kutrace_site_begin_with(at(site), &fields) == 1;
}

NATIVE(jboolean, asyncBegin0, jlong site, jlong number, jlongArray words, jobjectArray texts)
{
	struct kutrace_fields fields = fields_of(env, words, texts);

	return kutrace_site_async_begin(at(site), number, &fields) == 1;
}

NATIVE(jboolean, asyncEnd0, jlong site, jlong number)
{
	return kutrace_site_async_end(at(site), number) == 1;
}
