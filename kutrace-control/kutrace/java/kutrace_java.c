// SPDX-License-Identifier: BSD-3-Clause
/*
 * The C side of kutrace/Kutrace.java:
 * gcc -shared -fPIC -I$JAVA_HOME/include -I$JAVA_HOME/include/linux kutrace_java.c -lkutrace -o libkutrace_java.so
 */
#include <jni.h>
#include <kutrace.h>
#include <stdlib.h>

#define NATIVE(type, name, ...)                                               \
	JNIEXPORT type JNICALL Java_kutrace_Kutrace_##name(JNIEnv *env, jclass class, ##__VA_ARGS__)

static struct kutrace_site *at(jlong site)
{
	return (struct kutrace_site *)(intptr_t)site;
}

NATIVE(jboolean, isOn0)
{
	return kutrace_is_on();
}

NATIVE(jboolean, keep0, jstring reason)
{
	const char *bytes = reason ? (*env)->GetStringUTFChars(env, reason, NULL) : NULL;
	jboolean is_recorded = bytes && kutrace_keep(bytes) > 0;

	if (bytes)
		(*env)->ReleaseStringUTFChars(env, reason, bytes);
	return is_recorded;
}

NATIVE(jboolean, traceId0, jlong high, jlong low, jlong span)
{
	return kutrace_trace_id(high, low, span) == 1;
}

/* The place and its name are never freed, as the library requires. */
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

NATIVE(jboolean, counter0, jlong site, jlong number)
{
	return kutrace_site_counter(at(site), number) == 1;
}

NATIVE(jboolean, end0, jlong site)
{
	return kutrace_site_end(at(site)) == 1;
}

NATIVE(jboolean, asyncEnd0, jlong site, jlong number)
{
	return kutrace_site_async_end(at(site), number) == 1;
}

/* A mark, or the start of a span or async span: each field has a word, or a text instead. */
NATIVE(jboolean, put0, jlong site, jint what, jlong number, jlong kinds, jlongArray words, jobjectArray texts)
{
	struct kutrace_fields fields = { 0, { 0 }, kinds, 0 };
	jsize n, count = (*env)->GetArrayLength(env, words);

	for (n = 0; n < count; n++) {
		jstring text = (*env)->GetObjectArrayElement(env, texts, n);
		const char *bytes = text ? (*env)->GetStringUTFChars(env, text, NULL) : NULL;
		jlong word;

		if (text) {
			kutrace_fields_text(&fields, bytes);
			if (bytes)
				(*env)->ReleaseStringUTFChars(env, text, bytes);
			(*env)->DeleteLocalRef(env, text);
		} else if (fields.used < 15) {
			(*env)->GetLongArrayRegion(env, words, n, 1, &word);
			fields.words[fields.used++] = word;
		}
	}
	switch (what) {
	case 0:
		return kutrace_site_mark_with(at(site), &fields) == 1;
	case 1:
		return kutrace_site_begin_with(at(site), &fields) == 1;
	default:
		return kutrace_site_async_begin(at(site), number, &fields) == 1;
	}
}
